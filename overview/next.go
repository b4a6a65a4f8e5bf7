package overview

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/printable"
)

// Command is a command line that shows more about what was found.
type Command struct {
	Why  string   // what it shows, in a few words
	Args []string // behind the name of the program
}

// mostNext is how many commands a diagnosis names.
const mostNext = 3

// Next returns the commands that show more, the most useful first. They read the given files
// with the given flags. Standard input cannot be read again: the commands then name FILE.
func (c *Capture) Next(files, flags []string) []Command {
	n := next{files: files, flags: flags}
	t, f := c.worst()
	switch {
	case len(c.Flows) == 0 && len(c.Others) > 0:
		n.add("see all flows, with what speaks against each protocol:", "flows", "-V")
		n.bare("see which protocols it knows, and how to add a header of your own:", "protocols")
	case len(c.Flows) == 0:
		n.add("see what the packets are:", "packets")
	case t == nil:
		if c.notes() > 0 {
			n.add("read the notes:", "findings")
		}
		n.add("write a page with graphs and costs:", "report", "-o", "report.html")
		n.add("step through the packets:", "tui")
	default:
		n.trouble(t, f)
	}
	return n.list[:min(len(n.list), mostNext)]
}

// next collects commands.
type next struct {
	files, flags []string
	list         []Command
}

// add adds a command that reads the capture.
func (n *next) add(why, command string, args ...string) {
	n.list = append(n.list, NewCommand(why, n.files, n.flags, command, args...))
}

// NewCommand returns a command that reads files with flags. Standard input cannot be read again:
// the command then names FILE.
func NewCommand(why string, files, flags []string, command string, args ...string) Command {
	all := append([]string{command}, flags...)
	all = append(all, args...)
	for _, f := range files {
		switch {
		case f == "-":
			f = "FILE"
		case strings.HasPrefix(f, "-"):
			f = "./" + f
		}
		all = append(all, f)
	}
	return Command{why, all}
}

// bare adds a command that reads no capture.
func (n *next) bare(why string, args ...string) { n.list = append(n.list, Command{why, args}) }

// trouble adds what shows more about a trouble.
func (n *next) trouble(t *Trouble, f *Flow) {
	flow := strconv.Itoa(f.ID)
	frame := strconv.FormatUint(t.Frame.Frame(), 10)
	explain := func() { n.bare("read what "+t.Rule.ID+" means, and what to do:", "explain", t.Rule.ID) }
	switch {
	case t.Failed:
		n.add("see what was asked, and which causes are left:", "autopsy")
		n.add("see the packets of the flow:", "packets", "-Y", "flow == "+flow)
	case t.Rule == nil:
		n.add("see who gave up first, and what each side knew then:", "autopsy")
		n.add("see what both sides knew at the end:", "state", "--flow", flow)
		n.add("see the packets of the flow:", "packets", "-Y", "flow == "+flow)
	case t.Divergence != nil:
		n.add("see what the reference would have sent, and why:", "replay")
		n.add("see what both sides knew at that frame:", "state", "--flow", flow, "--at", frame)
		explain()
	case t.Origin == machine.OriginNetwork:
		explain()
		if f.losses() != "" {
			n.add("see which packets were lost:", "packets", "-Y", "flow == "+flow+" && fate == lost")
		}
		n.add("see when packets were lost (×) and sent again (R):", "graph", "--flow", flow)
		if f.RoundTrip().Mean >= 0 {
			n.add("see how the round trips went:", "graph", "-k", "rtt", "--flow", flow)
		}
	case t.Origin == machine.OriginLibrary && f.messages() > 0:
		explain()
		n.add("see each message that was sent again, and when it arrived:", "messages", "-Y",
			fmt.Sprintf("flow == %s && message.sends > 1", flow))
		n.add("see what both sides knew at that frame:", "state", "--flow", flow, "--at", frame)
	default:
		explain()
		n.add("see what both sides knew at that frame:", "state", "--flow", flow, "--at", frame)
		n.add("see the packet down to the bit:", "packets", "-V", "-Y", "frame.number == "+frame)
	}
}

// messages returns how many messages both sides sent.
func (f *Flow) messages() uint64 { return f.Sides[0].Lives.Count + f.Sides[1].Lives.Count }

// String formats the command for a shell, with the program's name.
func (c *Command) String() string {
	words := make([]string, 0, len(c.Args)+1)
	words = append(words, "ackscope")
	for _, a := range c.Args {
		words = append(words, Quote(a))
	}
	return strings.Join(words, " ")
}

// Quote quotes a word for POSIX shells, if it needs that. A word with control characters,
// such as the name of a hostile file, is quoted as bash and zsh read it: $'a\x1bb'.
func Quote(word string) string {
	if !printable.Clean(word) {
		return escaped(word)
	}
	plain := word != ""
	for i := range len(word) {
		c := word[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("-_./:@%+=,", c) >= 0:
		default:
			plain = false
		}
	}
	if plain {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// escaped quotes a word byte by byte, so that none of its characters reaches the terminal.
func escaped(word string) string {
	b := []byte("$'")
	for i := range len(word) {
		switch c := word[i]; {
		case c == '\'' || c == '\\':
			b = append(b, '\\', c)
		case c < 0x20 || c >= 0x7f:
			b = fmt.Appendf(b, `\x%02x`, c)
		default:
			b = append(b, c)
		}
	}
	return string(append(b, '\''))
}
