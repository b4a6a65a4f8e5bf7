package dissect

import "github.com/ackscope/ackscope/schema"

// Additions are what a user's files add to the protocols.
type Additions struct {
	// Profiles are the profiles by protocol. The protocol's DoneProfile made
	// each Config.
	Profiles map[string][]Profile
	Keys     *File // keys to decrypt with; nil if there are none
	Schema   *File // a schema of messages; nil if there is none
}

// A File is a file that the user named. Each protocol reads it on its own,
// since each has its own content for files of keys and schemas.
type File struct {
	// Name is the start of errors about the content: "--keys: match.yaml".
	Name string
	// Read fills a struct by its yaml tags.
	Read func(into any) error
	// Body reads a schema of messages with the given coding.
	Body func(coding schema.Coding) (*schema.Schema, error)
}

// Extend returns a registry with what a user's files add. It does not change r.
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
