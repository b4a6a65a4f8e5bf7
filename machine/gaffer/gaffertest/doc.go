// Package gaffertest is what the tests of machine/gaffer's rooms share.
//
//	Soak                         endpoints on a drawn, terrible network, and the
//	                             promises of the protocol held at every step
//	ReadLog, NearFlows, Captures recorded runs of real endpoints with their logs
//	Talk, Schema, Builtin        messages and profiles for either
package gaffertest
