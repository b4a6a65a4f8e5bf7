package app

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ackscope/ackscope/filter"
)

// UsageError is an error of the arguments of a command. Below it, the program
// prints how the command is called.
type UsageError struct {
	Text  string
	Usage string // as "ackscope flows [FILE...] [flags]"
}

// Error returns the sentence without the usage.
func (e *UsageError) Error() string { return e.Text }

// Usage returns an error of a command's arguments.
func Usage(c *cobra.Command, format string, args ...any) error {
	return &UsageError{Text: fmt.Sprintf(format, args...), Usage: c.UseLine()}
}

// Arguments checks the number of a command's arguments. Errors say what, such as
// "the captures IN and OUT".
func Arguments(least, most int, what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if n := len(args); n >= least && n <= most {
			return nil
		}
		return Usage(c, "%s: expected %s, found %s", called(c), what, strings.Join(quoted(args), ", "))
	}
}

// NoArguments refuses arguments.
func NoArguments(c *cobra.Command, args []string) error {
	return Arguments(0, 0, "no argument but flags")(c, args)
}

// FlagError turns an error of parsing flags into a sentence with the usage.
func FlagError(c *cobra.Command, err error) error {
	var missing *pflag.NotExistError
	var bare *pflag.ValueRequiredError
	var invalid *pflag.InvalidValueError
	var syntax *pflag.InvalidSyntaxError
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return err
	case errors.As(err, &missing):
		name := missing.GetSpecifiedName()
		if among := missing.GetSpecifiedShortnames(); among == name {
			return Usage(c, "%s has no flag -%s", called(c), name)
		} else if among != "" {
			return Usage(c, "%s has no flag -%s, found in -%s", called(c), name, among)
		}
		if near := filter.Nearest(name, flagNames(c)); near != "" {
			return Usage(c, "%s has no flag --%s; did you mean --%s?", called(c), name, near)
		}
		return Usage(c, "%s has no flag --%s", called(c), name)
	case errors.As(err, &bare):
		return Usage(c, "%s: expected %s behind it, found nothing", flagName(bare.GetFlag()), wanted(bare.GetFlag()))
	case errors.As(err, &invalid):
		f := invalid.GetFlag()
		if plain := map[string]bool{"string": true, "OCTAL": true}[f.Value.Type()]; plain {
			return Usage(c, "%s %q: %v", flagName(f), invalid.GetValue(), invalid.Unwrap())
		}
		return Usage(c, "%s %q: expected %s", flagName(f), invalid.GetValue(), wanted(f))
	case errors.As(err, &syntax):
		return Usage(c, "%q is no flag: expected -x or --name", syntax.GetSpecifiedFlag())
	}
	return Usage(c, "%v", err)
}

// called returns a command as users type it behind the program's name: "export csv".
func called(c *cobra.Command) string {
	return strings.TrimPrefix(c.CommandPath(), c.Root().Name()+" ")
}

// flagName returns a flag as users type it.
func flagName(f *pflag.Flag) string {
	if f.Shorthand != "" {
		return "-" + f.Shorthand + " (--" + f.Name + ")"
	}
	return "--" + f.Name
}

// wanted describes the value of a flag.
func wanted(f *pflag.Flag) string {
	switch f.Value.Type() {
	case "bool":
		return "true or false"
	case "int", "int64":
		return "a whole number"
	case "uint", "uint64", "uint32", "uint16":
		return "a whole number from 0"
	case "float64":
		return "a number"
	case "duration":
		return "a time such as 500ms, 5s or 2m"
	}
	if name, _ := pflag.UnquoteUsage(f); name != "" && name != "string" {
		return name
	}
	return "a value"
}

// flagNames lists the flags of a command, and those that all commands have.
func flagNames(c *cobra.Command) (names []string) {
	for _, set := range []*pflag.FlagSet{c.Flags(), c.InheritedFlags()} {
		set.VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && !slices.Contains(names, f.Name) {
				names = append(names, f.Name)
			}
		})
	}
	return names
}

// InOut returns the capture that a command reads and the one that it writes:
// its two arguments, or one argument and the file of -w. -r can name the first.
func (a *App) InOut(c *cobra.Command, args []string, write string) (in, out string, err error) {
	paths := append(append([]string(nil), a.Flags.Read...), args...)
	if write != "" {
		paths = append(paths, write)
	}
	if len(paths) != 2 {
		return "", "", Usage(c, "%s: expected the capture IN and the capture OUT to write, found %s", c.Name(),
			strings.Join(quoted(paths), ", "))
	}
	return paths[0], paths[1], nil
}

// quoted returns the words in quotes, or "nothing".
func quoted(words []string) (list []string) {
	for _, w := range words {
		list = append(list, fmt.Sprintf("%q", w))
	}
	if len(list) == 0 {
		return []string{"nothing"}
	}
	return list
}
