// Package gaffertest has what the tests of machine/gaffer and its subpackages share.
//
//	Soak                         endpoints on a drawn, terrible network; the promises
//	                             of the protocol are checked at every step
//	ReadLog, NearFlows, Captures recorded runs of real endpoints with their logs
//	Talk, Schema, Builtin        messages and profiles for both
package gaffertest
