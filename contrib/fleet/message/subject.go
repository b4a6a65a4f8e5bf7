package message

import (
	"fmt"
	"strings"
)

// Kind is what a message is about. It is the third token of a subject.
type Kind string

// The kinds of messages.
const (
	Flows    Kind = "flows"
	Findings Kind = "findings"
	Health   Kind = "health"
	Fetch    Kind = "fetch"
)

// Stored are the kinds that the hub keeps until they are collected.
var Stored = []Kind{Flows, Findings}

const (
	prefix = "ackscope.v1."
	// MostName bounds the names of sites and sensors. A name becomes part of a file's path.
	// Source: choice, half of the 63 bytes of a host's label
	MostName = 32
)

// Place is a sensor: its site, and its name there.
type Place struct{ Site, Sensor string }

// String returns SITE/SENSOR.
func (p Place) String() string { return p.Site + "/" + p.Sensor }

// Check returns an error if a name is not allowed.
func (p Place) Check() error {
	if err := CheckName("site", p.Site); err != nil {
		return err
	}
	return CheckName("sensor", p.Sensor)
}

// CheckName returns an error unless a name is 1 to 32 of the characters a-z, 0-9 and -, and begins with no -.
// Such a name is one token of a subject, a part of a stream's name, and a harmless name of a folder.
func CheckName(what, name string) error {
	ok := name != "" && len(name) <= MostName && name[0] != '-'
	for i := 0; i < len(name) && ok; i++ {
		c := name[i]
		ok = c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-'
	}
	if ok {
		return nil
	}
	return fmt.Errorf("%s: expected 1 to %d of a-z, 0-9 and -, found %s", what, MostName, Quoted(name))
}

// Subject returns the subject of a kind of messages of a sensor.
func Subject(kind Kind, at Place) string {
	return prefix + string(kind) + "." + at.Site + "." + at.Sensor
}

// Subjects returns the subjects of a kind: of one site, or of all if site is empty.
func Subjects(kind Kind, site string) string {
	if site == "" {
		site = "*"
	}
	return prefix + string(kind) + "." + site + ".*"
}

// ParseSubject is the inverse of Subject.
func ParseSubject(subject string) (Kind, Place, error) {
	wrong := func() (Kind, Place, error) {
		return "", Place{}, fmt.Errorf("subject: expected %sKIND.SITE.SENSOR, found %s", prefix, Quoted(subject))
	}
	rest, ok := strings.CutPrefix(subject, prefix)
	if !ok || len(rest) > len("findings")+2*MostName+2 {
		return wrong()
	}
	tokens := strings.Split(rest, ".")
	if len(tokens) != 3 { // kind, site and sensor
		return wrong()
	}
	kind, at := Kind(tokens[0]), Place{tokens[1], tokens[2]}
	switch kind {
	case Flows, Findings, Health, Fetch:
	default:
		return wrong()
	}
	return kind, at, at.Check()
}

// Stream returns the name of the stream that keeps a kind of messages of a site.
func Stream(kind Kind, site string) string { return "ackscope-" + string(kind) + "-" + site }

// ParseStream is the inverse of Stream. ok is false for the name of any other stream.
func ParseStream(name string) (kind Kind, site string, ok bool) {
	for _, kind := range Stored {
		if site, ok := strings.CutPrefix(name, "ackscope-"+string(kind)+"-"); ok && CheckName("site", site) == nil {
			return kind, site, true
		}
	}
	return "", "", false
}

// Bucket returns the name of the object store that keeps the packets fetched from a site.
func Bucket(site string) string { return "ackscope-packets-" + site }

// Inbox returns the prefix of the subjects on which a site receives answers. No other site may read them.
func Inbox(site string) string { return "_INBOX_" + site }
