// Package gaffer is the Gaffer family on the command line: for simulate and lab.
package gaffer
