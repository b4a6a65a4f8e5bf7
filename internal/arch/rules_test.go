package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/dissect/gaffer"
	"github.com/ackscope/ackscope/dissect/riptide"
	"github.com/ackscope/ackscope/dissect/srdp"
	"github.com/ackscope/ackscope/machine"
)

// judges are the packages that find divergences, by protocol.
var judges = []struct {
	protocol *dissect.Protocol
	dirs     []string
}{
	{gaffer.Protocol, []string{"machine/gaffer/judge", "machine/gaffer/article"}},
	{riptide.Protocol, []string{"machine/riptide/judge"}},
	{srdp.Protocol, []string{"machine/srdp/judge"}},
}

// TestDivergenceRulesAreListed holds the rules that the judges' source declares against
// those that the protocol lists: a rule that is missing there cannot be explained.
func TestDivergenceRulesAreListed(t *testing.T) {
	for _, j := range judges {
		var declared []string
		for _, dir := range j.dirs {
			for _, f := range parseDir(t, dir) {
				declared = append(declared, declaredRules(f.file)...)
			}
		}
		var listed []string
		for _, r := range j.protocol.DivergenceRules {
			listed = append(listed, r.ID)
		}
		slices.Sort(declared)
		slices.Sort(listed)
		if len(listed) < 10 || !slices.Equal(declared, listed) {
			t.Errorf("%s: %v declare the rules %v, and the protocol lists %v", j.protocol.Name, j.dirs, declared, listed)
		}
	}
}

// TestDivergencesAreWhole fails where a judge makes a divergence without its rule, or without
// what its reason rests on. It also fails where the rule is that of a finding.
func TestDivergencesAreWhole(t *testing.T) {
	made := 0
	for _, j := range judges {
		var findings []*machine.Rule
		for _, r := range j.protocol.Rules {
			if slices.Contains(j.protocol.DivergenceRules, r) {
				findings = append(findings, r)
			}
		}
		if len(findings) > 0 {
			t.Errorf("%s: %v are rules of findings and of divergences at once", j.protocol.Name, findings)
		}
		for _, dir := range j.dirs {
			for _, f := range parseDir(t, dir) {
				n, faults := partDivergences(f.set, f.file)
				for _, fault := range faults {
					t.Error(fault)
				}
				made += n
			}
		}
	}
	if made < 4 {
		t.Errorf("%d divergences are made, expected 4 at least", made)
	}
}

// TestNoChoiceByRuleName fails where the code chooses what to do by the name of a rule.
// What a rule decides is a field of the rule, or of the divergence; where one rule alone
// is meant, its value is compared.
func TestNoChoiceByRuleName(t *testing.T) {
	files := 0
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "testdata" || entry.Name() == ".git"):
			return filepath.SkipDir
		case !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		files++
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, at := range choices(file) {
			t.Errorf("%s chooses by the name of a rule: make it a field of the rule or of the divergence", set.Position(at))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 400 {
		t.Errorf("looked into %d files, expected the whole module", files)
	}
}

// TestRuleFaultsAreFound plants what the three tests forbid.
func TestRuleFaultsAreFound(t *testing.T) {
	for _, c := range []struct {
		source string
		rules  int // declared
		whole  int // divergences that say all
		part   int // and that do not
		chosen int
	}{
		{`var A = &machine.Rule{ID: "a"}; func f() { g(&machine.Rule{ID: "b"}) }`, 2, 0, 0, 0},
		{`func f() { _ = &machine.Divergence{Rule: A, RestsOn: B}; _ = machine.Divergence{Rule: A} }`, 0, 1, 1, 0},
		{`func f() { switch v.Rule.ID { case "a": } }`, 0, 0, 0, 1},
		{`func f() { switch v.Rule { case A: } }`, 0, 0, 0, 1},
		{`func f() bool { return x.Rule.ID == "a" || "b" != v.Rule.String() }`, 0, 0, 0, 2},
		{`func f() bool { return v.Rule == A || v.Rule.ID == name }`, 0, 0, 0, 0},
		{`var m = map[*machine.Rule]bool{A: true}`, 0, 0, 0, 1},
	} {
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, "planted.go", "package p\n"+c.source, 0)
		if err != nil {
			t.Fatal(err)
		}
		made, part := partDivergences(set, file)
		if rules, chosen := len(declaredRules(file)), len(choices(file)); rules != c.rules || made-len(part) != c.whole ||
			len(part) != c.part || chosen != c.chosen {
			t.Errorf("%s\ndeclares %d rules, makes %d divergences of which %d lack something, and chooses %d times",
				c.source, rules, made, len(part), chosen)
		}
	}
}

type parsed struct {
	set  *token.FileSet
	file *ast.File
}

// parseDir parses the files of a package but for its tests.
func parseDir(t *testing.T, dir string) (files []parsed) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(dir), "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, parsed{set, file})
	}
	if len(files) == 0 {
		t.Fatalf("%s has no files", dir)
	}
	return files
}

// declaredRules returns the IDs of the rules whose values a file writes out.
func declaredRules(file *ast.File) (ids []string) {
	ast.Inspect(file, func(n ast.Node) bool {
		c, ok := n.(*ast.CompositeLit)
		if !ok || !isMachine(c.Type, "Rule") {
			return true
		}
		id := "a rule without an ID"
		if lit, ok := valueOf(c, "ID").(*ast.BasicLit); ok {
			id, _ = strconv.Unquote(lit.Value)
		}
		ids = append(ids, id)
		return true
	})
	return ids
}

// partDivergences counts the divergences that a file writes out, and tells which of them
// lack the rule or what they rest on.
func partDivergences(set *token.FileSet, file *ast.File) (made int, faults []string) {
	ast.Inspect(file, func(n ast.Node) bool {
		c, ok := n.(*ast.CompositeLit)
		if !ok || !isMachine(c.Type, "Divergence") {
			return true
		}
		made++
		if valueOf(c, "Rule") == nil || valueOf(c, "RestsOn") == nil {
			faults = append(faults, fmt.Sprintf("%s: expected a divergence with Rule and RestsOn", set.Position(c.Pos())))
		}
		return true
	})
	return made, faults
}

// choices finds where a file chooses by the name of a rule. That is a switch over a rule or
// its ID, a comparison of its ID with a text, or a table by rules.
func choices(file *ast.File) (found []token.Pos) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SwitchStmt:
			if isRule(n.Tag) || isRuleName(n.Tag) {
				found = append(found, n.Pos())
			}
		case *ast.BinaryExpr:
			if n.Op != token.EQL && n.Op != token.NEQ {
				break
			}
			_, left := n.X.(*ast.BasicLit)
			_, right := n.Y.(*ast.BasicLit)
			if right && isRuleName(n.X) || left && isRuleName(n.Y) {
				found = append(found, n.Pos())
			}
		case *ast.CompositeLit:
			m, ok := n.Type.(*ast.MapType)
			if !ok || len(n.Elts) == 0 {
				break
			}
			if star, ok := m.Key.(*ast.StarExpr); ok && isMachine(star.X, "Rule") {
				found = append(found, n.Pos())
			}
		}
		return true
	})
	return found
}

// isRule reports whether an expression is the field Rule of something.
func isRule(x ast.Expr) bool {
	s, ok := x.(*ast.SelectorExpr)
	return ok && s.Sel.Name == "Rule"
}

// isRuleName reports whether an expression is the ID of a rule, or its text.
func isRuleName(x ast.Expr) bool {
	if call, ok := x.(*ast.CallExpr); ok {
		x = call.Fun
	}
	s, ok := x.(*ast.SelectorExpr)
	return ok && (s.Sel.Name == "ID" || s.Sel.Name == "String") && isRule(s.X)
}

func isMachine(x ast.Expr, name string) bool {
	s, ok := x.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != name {
		return false
	}
	p, ok := s.X.(*ast.Ident)
	return ok && p.Name == "machine"
}

// valueOf returns the value of a key of a composite literal; nil for none.
func valueOf(c *ast.CompositeLit, key string) ast.Expr {
	for _, e := range c.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			if k, ok := kv.Key.(*ast.Ident); ok && k.Name == key {
				return kv.Value
			}
		}
	}
	return nil
}
