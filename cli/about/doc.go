// Package about holds the commands that describe ackscope itself: protocols,
// fields, explain, schema and man. It also reads the profiles, keys and schemas
// that the command line names.
package about
