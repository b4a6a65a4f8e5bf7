// Package riptide describes endpoints of Riptide to a run: how they are made, what
// their applications send, and the words of their logs. The commands simulate and
// lab share it.
package riptide
