// Package webpage tests the page of `ackscope web` in Chromium: its figures are those of the
// command line, it asks for nothing after it has loaded, and everybody can use it.
package webpage
