package yamlfile

import (
	"fmt"
	"slices"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/schema"
)

// File is a configuration file. Where Data is nil, the file at Path is read, once it is needed.
// Errors name Path in both cases.
type File struct {
	Path string
	Data []byte
}

func (f *File) bytes() ([]byte, error) {
	if f.Data != nil {
		return f.Data, checkSize(f.Data, f.Path)
	}
	return ReadFile(f.Path)
}

// Files are what a user adds to the protocols: --profiles, --keys and --schema.
type Files struct {
	Profiles     []File
	Keys, Schema *File // nil for none
}

// Extend returns a registry with what files add to it. It does not change r.
func Extend(r *dissect.Registry, files Files) (*dissect.Registry, error) {
	if len(files.Profiles) == 0 && files.Keys == nil && files.Schema == nil {
		return r, nil
	}
	extra := map[string][]dissect.Profile{}
	for i := range files.Profiles {
		f := &files.Profiles[i]
		src, err := f.bytes()
		if err != nil {
			return nil, fmt.Errorf("--profiles: %w", err)
		}
		list, err := Profiles(src, f.Path, r)
		if err != nil {
			return nil, fmt.Errorf("--profiles: %w", err)
		}
		for _, x := range list {
			p, _ := r.Lookup(x.Protocol)
			for _, taken := range slices.Concat(p.Profiles, extra[x.Protocol]) {
				if taken.Name == x.Name {
					return nil, fmt.Errorf("--profiles: %s: %s already has a profile named %q: choose another name", f.Path,
						x.Protocol, x.Name)
				}
			}
			extra[x.Protocol] = append(extra[x.Protocol], x.Profile)
		}
	}
	return r.Extend(dissect.Additions{
		Profiles: extra, Keys: named("--keys", files.Keys), Schema: named("--schema", files.Schema),
	})
}

// named returns the file of an option for the protocols, or nil.
func named(option string, f *File) *dissect.File {
	if f == nil {
		return nil
	}
	read := func(decode func(src []byte) error) error {
		src, err := f.bytes()
		if err == nil {
			err = decode(src)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", option, err)
		}
		return nil
	}
	return &dissect.File{
		Name: option + ": " + f.Path,
		Read: func(into any) error {
			return read(func(src []byte) error { return Read(src, f.Path, into) })
		},
		Body: func(coding schema.Coding) (s *schema.Schema, err error) {
			err = read(func(src []byte) error {
				s, err = Schema(src, f.Path, coding)
				return err
			})
			return s, err
		},
	}
}
