// Package message defines what a fleet says over NATS: subjects, message ids, and the bodies.
//
//	ackscope.v1.flows.SITE.SENSOR      a flow that ended; stored in the stream ackscope-flows-SITE
//	ackscope.v1.findings.SITE.SENSOR   a finding; stored in the stream ackscope-findings-SITE
//	ackscope.v1.health.SITE.SENSOR     how the sensor does, every 10 s; not stored
//	ackscope.v1.fetch.SITE.SENSOR      a request for packets of the sensor's ring
//
// Each site has streams of its own. So the sensors of one site can neither use up the room of another, nor take the
// message ids of another.
//
// Every message may come from an attacker. A parser checks sizes before it reads, and says what it expected.
package message
