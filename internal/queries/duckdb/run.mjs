// Runs queries in DuckDB, in the folder where it is started. It reads a list of texts in JSON, and
// prints a list of tables: {columns, rows}. Instants have the form of RFC 3339, in microseconds.
import { readFileSync } from 'node:fs'
import { DuckDBInstance } from '@duckdb/node-api'

const connection = await (await DuckDBInstance.create(':memory:')).connect()
await connection.run("SET TimeZone = 'UTC'")

function plain(value) {
  if (typeof value === 'bigint') return Number(value)
  if (value?.micros === undefined) return value
  const seconds = value.micros / 1000000n, rest = value.micros % 1000000n
  return new Date(Number(seconds) * 1000).toISOString().slice(0, 20) + String(rest).padStart(6, '0') + 'Z'
}

const tables = []
for (const text of JSON.parse(readFileSync(0, 'utf8'))) {
  const reader = await connection.runAndReadAll(text)
  tables.push({ columns: reader.columnNames(), rows: reader.getRows().map((row) => row.map(plain)) })
}
process.stdout.write(JSON.stringify(tables))
