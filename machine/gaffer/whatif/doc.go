// Package whatif runs a captured Gaffer flow again under other settings: it makes the
// two endpoints, and what their applications asked for, from the trace of the flow
// (machine.Stage). The endpoints know the sizes of messages and not their contents.
package whatif
