// Package gaffer adds the Gaffer family to the commands simulate and lab.
package gaffer
