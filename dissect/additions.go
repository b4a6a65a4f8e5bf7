package dissect

import "github.com/ackscope/ackscope/schema"

// Additions are what a user's files add to the protocols.
type Additions struct {
	// Profiles are by protocol. Each Config comes from that protocol's DoneProfile.
	Profiles map[string][]Profile
	Keys     *File // keys to decrypt with; nil for none
	Schema   *File // a schema of messages; nil for none
}

// A File is one that the user named. A protocol reads from it what it knows, since
// what stands in a file of keys or a schema is each protocol's own.
type File struct {
	// Name is what errors about its content begin with: "--keys: match.yaml".
	Name string
	// Read fills a struct by its yaml tags.
	Read func(into any) error
	// Body reads a schema of messages that are packed by coding.
	Body func(coding schema.Coding) (*schema.Schema, error)
}

// Extend returns the protocols with what a user's files add; the registry itself
// stays as it is.
func (r *Registry) Extend(a Additions) (*Registry, error) {
	extended := &Registry{protocols: make([]*Protocol, len(r.protocols))}
	for i, p := range r.protocols {
		extended.protocols[i] = p
		if p.Extend == nil {
			continue
		}
		var err error
		if extended.protocols[i], err = p.Extend(a); err != nil {
			return nil, err
		}
	}
	return extended, nil
}
