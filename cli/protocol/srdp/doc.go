// Package srdp adds SRDP to the commands simulate and lab.
package srdp
