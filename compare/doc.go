// Package compare says how two sets of captures differ: those from before a change of a
// game, and those from after it. For example, messages of type 3 arrive 28 ms later.
//
//	analyze.Record -> Capture (before, after): flows -> slices of time
//	                  Capture, Capture -> Compare -> Result: differences that are real
//
// A difference is real where chance alone would not show it. Package compare estimates
// chance by a bootstrap over flows, where there are many, or over slices of time. It
// corrects for the number of comparisons: of a hundred pairs of captures without a
// difference, at most five report one.
//
// Two runs of one game differ by how the frames of both ends fall on each other, which a
// single run does not show. So where frames stay in step, and flows are few, a difference
// below one frame is not real.
package compare
