// Package riptide describes endpoints of Riptide for a run: how to make them, what their
// applications send, and the format of their logs. The commands simulate and lab share it.
package riptide
