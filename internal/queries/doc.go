// Package queries makes the files of the folder queries: questions about tables, in SQL.
//
// A file of templates is one question for every engine. Engines differ in how they read Parquet and in the names
// of a few functions. So each engine has a folder of files that can be copied and run as they are:
//
//	templates/studio-resends.sql -> queries/duckdb/studio-resends.sql
//	                             -> queries/clickhouse/studio-resends.sql
//
// The tests run every file as it is, and compare its rows with a computation of their own. Those about the tables of
// `ackscope batch` are here, and those about the tables of a collector are in contrib/fleet/collect.
package queries
