package about

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/printable"
	"github.com/ackscope/ackscope/schema/yamlfile"
	"github.com/ackscope/ackscope/show"
)

// ProtocolsCommand builds `ackscope protocols`, which lists protocols, and
// prints profiles as files to start from.
func ProtocolsCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:   "protocols [NAME[:PROFILE]]",
		Short: "The protocols that are known; of one, its profiles as a file ready to copy",
		Long: `protocols lists the protocols with their profiles: the settings by which a flow is read. A
protocol's name prints its profiles as documented YAML. Copy one, give it a name of your own,
change what your game does otherwise, and hand the file to any command with --profiles.`,
		Example: `  ackscope protocols
  ackscope protocols gaffer:article > mygame.yaml
  ackscope flows --profiles mygame.yaml match.pcapng
  ackscope flows --profiles mygame.yaml -d udp.port==7777,gaffer:my-article match.pcapng`,
		Args: app.Arguments(0, 1, "one PROTOCOL[:PROFILE], or nothing"),
		ValidArgsFunction: func(c *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return completeProfile(a, c, args, word)
		},
		RunE: func(_ *cobra.Command, args []string) error { return showProtocols(a, args) },
	}
}

func showProtocols(a *app.App, args []string) error {
	paint, err := a.Painter()
	if err != nil {
		return err
	}
	if len(args) == 0 {
		return listProtocols(a, paint)
	}
	name, profile, _ := strings.Cut(args[0], ":")
	p, ok := a.Registry.Lookup(name)
	if !ok {
		return fmt.Errorf("no protocol %q: expected %s", name, strings.Join(protocolNames(a), ", "))
	}
	printed := 0
	w := a.Writer()
	for i := range p.Profiles {
		x := &p.Profiles[i]
		if profile != "" && x.Name != profile {
			continue
		}
		if a.Flags.JSON {
			if err := profileObject(a, p, x); err != nil {
				return err
			}
			printed++
			continue
		}
		if p.NewProfile == nil {
			fmt.Fprintf(w, "%s:%s  %s\n", p.Name, x.Name, printable.String(x.Doc))
			printed++
			continue
		}
		text, err := ProfileYAML(p, x)
		if err != nil {
			return err
		}
		if printed > 0 {
			fmt.Fprintln(w, "---")
		}
		if _, err := w.Write(text); err != nil {
			return err
		}
		printed++
	}
	if printed == 0 && profile != "" {
		return fmt.Errorf("%s has no profile %q: expected one of %s", name, profile, strings.Join(profileNames(p), ", "))
	}
	return nil
}

func listProtocols(a *app.App, paint show.Painter) error {
	w := a.Writer()
	for i, p := range a.Registry.Protocols() {
		if a.Flags.JSON {
			for j := range p.Profiles {
				if err := profileObject(a, p, &p.Profiles[j]); err != nil {
					return err
				}
			}
			continue
		}
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "%s  %s\n", paint.String(show.Bold, p.Name), p.Title)
		c := &app.Columns{Paint: paint, Heads: []string{"  profile", "what it reads"}, Right: []bool{false, false}}
		if err := c.Render(w, len(p.Profiles), func(i int) {
			c.Str("", "  "+p.Profiles[i].Name)
			c.Str("", p.Profiles[i].Doc)
		}); err != nil {
			return err
		}
	}
	return nil
}

func profileObject(a *app.App, p *dissect.Protocol, x *dissect.Profile) error {
	var o app.Object
	o.Begin()
	o.Str("protocol", p.Name)
	o.Str("title", p.Title)
	o.Str("profile", x.Name)
	o.Str("doc", x.Doc)
	return o.End(a.Writer())
}

func protocolNames(a *app.App) []string {
	var names []string
	for _, p := range a.Registry.Protocols() {
		names = append(names, p.Name)
	}
	return names
}

func profileNames(p *dissect.Protocol) []string {
	var names []string
	for i := range p.Profiles {
		names = append(names, p.Profiles[i].Name)
	}
	return names
}

// completeProfile completes PROTOCOL and PROTOCOL:PROFILE.
func completeProfile(a *app.App, _ *cobra.Command, args []string, toComplete string) ([]string,
	cobra.ShellCompDirective,
) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var out []string
	for _, p := range a.Registry.Protocols() {
		out = append(out, p.Name+"\t"+p.Title)
		for i := range p.Profiles {
			out = append(out, p.Name+":"+p.Profiles[i].Name+"\t"+printable.String(p.Profiles[i].Doc))
		}
	}
	return withPrefix(out, toComplete), cobra.ShellCompDirectiveNoFileComp
}

// CompleteDecodeAs completes the profile after the comma of -d.
func CompleteDecodeAs(a *app.App, c *cobra.Command, _ []string, toComplete string) ([]string,
	cobra.ShellCompDirective,
) {
	selector, target, ok := strings.Cut(toComplete, ",")
	if !ok {
		return []string{"udp.port==", "tcp.port==", "ip.addr=="},
			cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
	}
	out, directive := completeProfile(a, c, nil, target)
	for i := range out {
		out[i] = selector + "," + out[i]
	}
	return out, directive
}

func withPrefix(list []string, prefix string) []string {
	var out []string
	for _, s := range list {
		if strings.HasPrefix(s, prefix) {
			out = append(out, s)
		}
	}
	return out
}

// LoadProfiles reads the files of --profiles, --keys and --schema into the registry.
func LoadProfiles(a *app.App) error {
	var files yamlfile.Files
	for _, path := range a.Flags.Profiles {
		files.Profiles = append(files.Profiles, yamlfile.File{Path: path})
	}
	if a.Flags.Keys != "" {
		files.Keys = &yamlfile.File{Path: a.Flags.Keys}
	}
	if a.Flags.Schema != "" {
		files.Schema = &yamlfile.File{Path: a.Flags.Schema}
	}
	registry, err := yamlfile.Extend(a.Registry, files)
	if err != nil || registry == a.Registry {
		return err
	}
	a.Registry, a.FieldTable = registry, nil
	return nil
}
