package labs

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/dissect"
)

// Spelled rewrites a command line `ackscope lab PROTOCOL:PROFILE …` to the
// command of the protocol with its flag --profile. It returns other command
// lines unchanged. What can follow the profile, such as :tcp, sets flags too.
func Spelled(root *cobra.Command, args []string, protocols []*Protocol) []string {
	c, _, err := root.Find(args)
	if err != nil || c.Name() != "lab" || c.Parent() != root {
		return args
	}
	for i, word := range args {
		name, profile, ok := strings.Cut(word, ":")
		if !ok {
			continue
		}
		for _, p := range protocols {
			if p.Name != name {
				continue
			}
			spelled := append(append([]string(nil), args[:i]...), name)
			for way, flags := range p.Ways {
				if rest, ok := strings.CutSuffix(":"+profile, ":"+way); ok {
					spelled, profile = append(spelled, flags...), strings.TrimPrefix(rest, ":")
					break
				}
			}
			if profile != "" {
				spelled = append(spelled, "--profile", profile)
			}
			return append(spelled, args[i+1:]...)
		}
	}
	return args
}

// completeProtocols completes PROTOCOL:PROFILE. The protocols alone are
// commands.
func completeProtocols(registry *dissect.Registry, protocols []*Protocol) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, word string) (list []cobra.Completion, _ cobra.ShellCompDirective) {
		for _, p := range protocols {
			known, ok := registry.Lookup(p.Name)
			if !ok || len(args) > 0 {
				continue
			}
			for i := range known.Profiles {
				if form := p.Name + ":" + known.Profiles[i].Name; strings.HasPrefix(form, word) {
					list = append(list, cobra.CompletionWithDesc(form, known.Profiles[i].Doc))
				}
			}
		}
		return list, cobra.ShellCompDirectiveNoFileComp
	}
}
