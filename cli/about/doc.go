// Package about holds the commands that tell what ackscope knows: protocols, fields,
// explain, schema and man; and reads the profiles, keys and schemas that a user names.
package about
