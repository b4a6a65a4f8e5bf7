package app

import (
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// choices matches the value of a flag that takes one of several words, as its
// help names it: a|b|both.
var choices = regexp.MustCompile(`^[a-z0-9][a-z0-9.:-]*(\|[a-zA-Z0-9.:-]+)+$`)

// Choices returns the words that a flag takes, if its help lists them. Of a word
// with a value behind it, such as reject:TEXT, it returns the part before.
func Choices(f *pflag.Flag) (words []string) {
	name, _ := pflag.UnquoteUsage(f)
	if !choices.MatchString(name) {
		return nil
	}
	for word := range strings.SplitSeq(name, "|") {
		words = append(words, strings.TrimRight(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"))
	}
	return words
}

// CompleteChoices completes the words of every flag whose help lists them, for a
// command and all commands below it. Flags that complete more keep that.
func CompleteChoices(c *cobra.Command) {
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if words := Choices(f); words != nil {
			_ = c.RegisterFlagCompletionFunc(f.Name, CompleteWords(words...)) // an error: it completes already
		}
	})
	for _, below := range c.Commands() {
		CompleteChoices(below)
	}
}
