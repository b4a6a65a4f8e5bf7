// Package about holds the commands that describe ackscope itself: protocols,
// fields, explain, schema and man. For example, `ackscope explain loss-burst`
// says what the rule means and what to do.
//
// The package also reads the profiles, keys and schemas that the command line
// names.
package about
