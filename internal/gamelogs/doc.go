// Package gamelogs tests how package gamelog aligns the logs of real endpoints with captures of
// the same runs. For example, it gives the log of reliable-loss10 another epoch and a clock that
// is 200 ppm fast. It compares the times that come out with those of the original log.
package gamelogs
