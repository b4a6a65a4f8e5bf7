// Command ackscope analyzes captures of the reliability protocols that games
// run over UDP.
package main

func main() {}
