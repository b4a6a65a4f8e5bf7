// Package srdp is SRDP on the command line: for simulate and lab.
package srdp
