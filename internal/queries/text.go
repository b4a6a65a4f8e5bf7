package queries

import (
	"embed"
	"fmt"
	"path"
	"slices"
	"strings"
	"text/template"
)

//go:embed templates/*.sql
var templates embed.FS

// Engine is a program that runs queries.
type Engine string

// The engines.
const (
	DuckDB     Engine = "duckdb"
	ClickHouse Engine = "clickhouse"
)

// Engines returns all engines.
func Engines() []Engine { return []Engine{DuckDB, ClickHouse} }

// Names returns the names of the queries that begin with a prefix, sorted: studio-… and operator-….
func Names(prefix string) (names []string) {
	files, err := templates.ReadDir("templates")
	if err != nil {
		panic(err) // they are part of the program
	}
	for _, f := range files {
		if name, ok := strings.CutSuffix(f.Name(), ".sql"); ok && strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// File returns the path of a query's file in the repository.
func File(e Engine, name string) string { return path.Join("queries", string(e), name+".sql") }

// Text returns the text of a query for an engine.
func Text(e Engine, name string) (string, error) {
	fill := map[string]any{
		"table":    e.table,
		"quantile": e.quantile,
		"network":  e.network,
		"names":    e.names,
		"how":      func() string { return e.how(name) },
		"close":    e.close,
	}
	text, err := templates.ReadFile("templates/" + name + ".sql")
	if err != nil {
		return "", err
	}
	t, err := template.New(name).Funcs(fill).Parse(string(text))
	if err != nil {
		return "", err
	}
	var b strings.Builder
	if err := t.Execute(&b, nil); err != nil {
		return "", err
	}
	return b.String(), nil
}

// table returns what reads a table of the folder tables. The folders there are named after labels. No query reads
// labels from these names, since both engines guess types: the build 1.10 would become the number 1.1.
func (e Engine) table(table string) string {
	files := "tables/" + table + ".parquet"
	if table != "captures" {
		files = "tables/" + table + "/**/*.parquet"
	}
	if e == ClickHouse {
		return fmt.Sprintf("file('%s', Parquet)", files)
	}
	return fmt.Sprintf("read_parquet('%s', hive_partitioning = false)", files)
}

// quantile returns an exact quantile between values, which passes over NULL.
func (e Engine) quantile(of, column string) string {
	if e == ClickHouse {
		return fmt.Sprintf("quantileExactInclusive(%s)(%s)", of, column)
	}
	return fmt.Sprintf("quantile_cont(%s, %s)", column, of)
}

// network returns the first three numbers of an IPv4 address. It leaves other addresses as they are.
func (e Engine) network(column string) string {
	group := `\1`
	if e == ClickHouse {
		group = `\\1` // a backslash escapes in its texts
	}
	return fmt.Sprintf("regexp_replace(%s, '^([0-9]+[.][0-9]+[.][0-9]+)[.][0-9]+$', '%s.0/24')", column, group)
}

// names returns the different texts of a column, sorted, in one text.
func (e Engine) names(column string) string {
	if e == ClickHouse {
		return fmt.Sprintf("arrayStringConcat(arraySort(groupUniqArray(%s)), ', ')", column)
	}
	return fmt.Sprintf("string_agg(DISTINCT %[1]s, ', ' ORDER BY %[1]s)", column)
}

// how returns the comment that says how the file is run.
func (e Engine) how(query string) string {
	command, elsewhere := "duckdb -f "+query+".sql", "read_parquet('s3://…')"
	if e == ClickHouse {
		command, elsewhere = "clickhouse local --queries-file "+query+".sql", "s3('https://…', Parquet)"
	}
	from := "that `ackscope batch -o tables --manifest …` wrote"
	if strings.HasPrefix(query, "operator-") {
		from = "that `ackscope-fleet collect -o tables` writes"
	}
	return fmt.Sprintf("-- Run it beside the folder tables %s:\n--   %s\n"+
		"-- For a folder elsewhere, change the paths below; in an object store, to %s.", from, command, elsewhere)
}

// close ends a query. ClickHouse would fill a row that a LEFT JOIN does not find with zeros and empty texts.
func (e Engine) close() string {
	if e == ClickHouse {
		return "\nSETTINGS join_use_nulls = 1, use_hive_partitioning = 0;"
	}
	return ";"
}
