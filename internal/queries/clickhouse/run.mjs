// Runs queries in chDB, which is ClickHouse in a process, in the folder where it is started. It reads a
// list of texts in JSON, and prints a list of tables: {columns, rows}. Instants have the form of
// RFC 3339, in microseconds.
import { readFileSync } from 'node:fs'
import chdb from 'chdb'

const instants = /DateTime/

function plain(value, type) {
  if (value === null || !instants.test(type)) return value
  const [second, rest = ''] = value.replace(' ', 'T').split('.')
  return second + '.' + rest.slice(0, 6).padEnd(6, '0') + 'Z'
}

const tables = []
for (const text of JSON.parse(readFileSync(0, 'utf8'))) {
  const said = JSON.parse(chdb.query(text, 'JSONCompact'))
  const types = said.meta.map((column) => column.type)
  tables.push({
    columns: said.meta.map((column) => column.name),
    rows: said.data.map((row) => row.map((value, i) => plain(value, types[i]))),
  })
}
process.stdout.write(JSON.stringify(tables))
