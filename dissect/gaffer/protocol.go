// Package gaffer describes the Gaffer family to ackscope: its fields, its profiles, and
// how a flow of it is recognised.
//
// The codec is wire/gaffer, which also has the byte diagrams. What the packets mean to
// both ends is machine/gaffer. Package layers has layers for programs that use
// gopacket.
package gaffer

import (
	"fmt"
	"slices"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/dissect/gaffer/netcode"
	"github.com/ackscope/ackscope/machine"
	model "github.com/ackscope/ackscope/machine/gaffer"
	"github.com/ackscope/ackscope/machine/gaffer/article"
	"github.com/ackscope/ackscope/machine/gaffer/judge"
	"github.com/ackscope/ackscope/machine/gaffer/messages"
	machinenetcode "github.com/ackscope/ackscope/machine/gaffer/netcode"
	"github.com/ackscope/ackscope/machine/gaffer/tracker"
	"github.com/ackscope/ackscope/machine/gaffer/whatif"
	"github.com/ackscope/ackscope/machine/gaffer/yojimbo"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// protocolName is the family's name on command lines and in records.
const protocolName = "gaffer"

// Protocol describes the Gaffer family with its built-in profiles.
var Protocol = newProtocol(nil, nil)

// WithProfiles returns a descriptor that also has a user's profiles. They are listed,
// and tried on every flow. Each Config must come from Protocol.DoneProfile.
func WithProfiles(extra []dissect.Profile) *dissect.Protocol { return newProtocol(extra, nil) }

// extend reads a user's profiles and keys.
func extend(a dissect.Additions) (*dissect.Protocol, error) {
	extra := a.Profiles[protocolName]
	if a.Keys == nil {
		return WithProfiles(extra), nil
	}
	var f netcode.KeyFile
	if err := a.Keys.Read(&f); err != nil {
		return nil, err
	}
	keys, err := netcode.NewKeys(&f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.Keys.Name, err)
	}
	return WithKeys(extra, keys), nil
}

func newProtocol(extra []dissect.Profile, keys *netcode.Keys) *dissect.Protocol {
	set := newProfileSet(extra, keys)
	fresh := func() classifier { return classifier{set: set, room: &rooms{}} }
	classify := func() dissect.Classifier {
		c := fresh()
		return &c
	}
	if keys != nil {
		classify = func() dissect.Classifier {
			return &keyedClassifier{classifier: fresh(), decryptor: netcode.NewDecryptor(keys)}
		}
	}
	return &dissect.Protocol{
		Name:        protocolName,
		Title:       "Gaffer (reliable ordered messages)",
		Fields:      slices.Concat(allFields, yojimboFields),
		Profiles:    set.profiles,
		NewProfile:  newSettings,
		DoneProfile: doneSettings,
		Extend:      extend,
		SettingDocs: settingDocs,
		Classify:    classify,
		Dissect:     Dissect,
		Account:     account,
		Edit:        edit,
		Info:        Info,
		Message:     messageValues,
		Sealed:      sealed,
		NoMessages:  noMessages,
		NewTracker:  newTracker,
		NewDeferred: newDeferred,
		Review:      set.review,
		Rules:       slices.Concat(model.FindingRules, machinenetcode.Rules, yojimbo.Rules, messages.Rules),
		EventNames:  model.EventNames,
		NewAssembly: newAssembly,
		NewPieces:   newPieces,

		Behaviours:      judge.Behaviours,
		BehavioursOf:    behavioursOf,
		Versions:        versionsOf,
		NewJudge:        newJudge,
		DivergenceRules: slices.Concat(judge.Rules, article.Rules),
		NewStage:        newStage,
		Parameters:      whatif.Parameters,
	}
}

// entry is a profile that is tried on flows.
type entry struct {
	name   string
	config *dissect.Config
	wire   *wire.Profile
	bar    float64 // evidence that it needs, in bits; 0: the default
	shape  string  // equal for profiles that read datagrams alike
	family string  // equal for profiles that read them alike, but for the meaning of ack_bits
}

// profileSet is the profiles of one descriptor, sorted by how they are tried.
type profileSet struct {
	profiles     []dissect.Profile
	plain        []*entry
	framed       []*entry
	netcode      *wire.Profile
	netcodeEntry *entry
	rivals       bool            // two profiles differ only in the meaning of ack_bits
	keys         *netcode.Keys   // nil if none are given
	secured      *dissect.Config // how flows that the keys open are read
}

func newProfileSet(extra []dissect.Profile, keys *netcode.Keys) *profileSet {
	s := &profileSet{keys: keys}
	for _, name := range wire.BuiltinNames() {
		p, doc, err := wire.Builtin(name)
		if err != nil {
			panic(err) // a built-in profile that is not valid: the tests of wire/gaffer read all of them
		}
		if bodies := sampleBodies(name); bodies != nil {
			if err := attach(p, bodies); err != nil {
				panic(err) // as above: the tests decode every packet of the samples
			}
		}
		x := dissect.Profile{Name: name, Doc: doc, Config: &dissect.Config{Dialect: name, Profile: p}}
		if versions[name] {
			s.profiles = append(s.profiles, x)
			continue
		}
		s.add(x)
	}
	for _, p := range extra {
		s.add(p)
	}
	if keys != nil {
		s.add(dissect.Profile{
			Name:   Yojimbo,
			Doc:    "yojimbo, decrypted with the keys given; how the game packs its messages is found from the packets.",
			Config: s.secure(Yojimbo, nil),
		})
	}
	return s
}

// versions are the built-in profiles of one version of reliable. Its packets alone do not
// show the version, so no flow is read by them unless the user or a whole run says so.
var versions = map[string]bool{wire.ReliableBefore13: true, wire.ReliableFrom13: true, wire.Rely: true}

func (s *profileSet) add(p dissect.Profile) {
	p.Fields = schemaFields(p.Config)
	if y, ok := p.Config.Profile.(*wire.Yojimbo); ok {
		// A game's channels and messages. They can be read only if keys are given.
		p.Config = &dissect.Config{Dialect: s.netcodeEntry.config.Dialect, Profile: s.netcode}
		if s.keys != nil {
			p.Config = s.secure(p.Name, y)
		}
	}
	s.profiles = append(s.profiles, p)
	if _, ok := p.Config.Profile.(*secured); ok && s.secured == nil {
		s.secured = p.Config
	}
	w, ok := p.Config.Profile.(*wire.Profile)
	if !ok || w == s.netcode {
		return
	}
	e := &entry{name: p.Name, config: p.Config, wire: w, bar: w.DetectBits, family: family(w)}
	e.shape = fmt.Sprint(e.family, w.AckBase)
	s.rivals = s.rivals || s.rival(w) != nil
	switch {
	case w.Form == wire.FormNetcode:
		if s.netcode == nil {
			s.netcode, s.netcodeEntry = w, e
		}
	case w.HasCRC() && w.EndCheck:
		s.framed = append(s.framed, e)
	default:
		s.plain = append(s.plain, e)
	}
}

// family returns a text that is equal for profiles that read datagrams alike, but for
// the meaning of ack_bits.
func family(w *wire.Profile) string {
	return fmt.Sprint(w.Form, w.ByteOrder, w.Prefix, w.Header, w.PacketTypes, w.PayloadLengthBits, w.EndCheck,
		w.Fragments, w.Slices, w.SliceSize, w.Handshake)
}

// candidates returns a fresh candidate for each entry, in room if that is large enough.
func (s *profileSet) candidates(room []candidate, entries []*entry) []candidate {
	c := slices.Grow(room[:0], len(entries))[:len(entries)]
	for i, e := range entries {
		c[i] = candidate{profile: e.wire}
	}
	return c
}

// sealed says why netcode's packets cannot be read: no keys were given.
func sealed(c *dissect.Config) string {
	if p, ok := c.Profile.(*wire.Profile); ok && p.Form == wire.FormNetcode {
		return c.Dialect + " is encrypted: give --keys (docs/keys.md)"
	}
	return ""
}

// noMessages says that a profile has no message section.
func noMessages(c *dissect.Config) string {
	p, ok := c.Profile.(*wire.Profile)
	if !ok || model.IsSample(p) || p.Messages.Form != wire.MessagesNone {
		return ""
	}
	return "profile " + c.Dialect + " has no message section: describe yours with --profiles (docs/gaffer.md#messages)"
}

// newDeferred is newTracker for a caller that reads no effects before the end of the flow.
func newDeferred(c *dissect.Config) machine.Tracker {
	p, ok := c.Profile.(*wire.Profile)
	if !ok || p.Form == wire.FormNetcode || model.IsSample(p) || !p.HasAcks() || p.Messages.Form != wire.MessagesNone {
		return newTracker(c)
	}
	return tracker.NewDeferred(p, &c.Facts)
}

// newTracker returns a tracker of what both ends knew. If the datagrams have no
// readable acks, it returns one that counts.
func newTracker(c *dissect.Config) machine.Tracker {
	if k, ok := c.Profile.(*secured); ok {
		return yojimbo.NewTracker(k.layers, netcode.NewDecryptor(k.keys), c.Facts)
	}
	p, ok := c.Profile.(*wire.Profile)
	switch {
	case ok && p.Form == wire.FormNetcode:
		return machinenetcode.NewTracker(p, c.Facts)
	case ok && model.IsSample(p):
		return article.NewTracker(p, c.Facts)
	case !ok || !p.HasAcks():
		return &opaque{}
	case p.Messages.Form != wire.MessagesNone:
		return tracker.NewConversation(p, c.Facts)
	}
	return tracker.New(p, c.Facts)
}
