// Package batching implements the command that analyses very many captures into a folder of tables,
// and compares such folders: batch.
package batching
