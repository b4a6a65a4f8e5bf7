// Package webpage tests the page of `ackscope web` in Chromium. Its figures are those of the
// command line. It asks for nothing after it has loaded, and everybody can use it.
package webpage
