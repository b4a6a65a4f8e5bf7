package app

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Repeated returns the flags that commands to paste need too: those that say how captures are
// read.
func Repeated(c *cobra.Command) (list []string) {
	c.Flags().Visit(func(f *pflag.Flag) {
		switch f.Name {
		case "decode-as", "profiles":
			if v, ok := f.Value.(pflag.SliceValue); ok {
				for _, x := range v.GetSlice() {
					list = append(list, "--"+f.Name, x)
				}
			}
		case "keys", "schema", "vantage", "memory":
			list = append(list, "--"+f.Name, f.Value.String())
		case "join":
			list = append(list, "--join="+f.Value.String())
		}
	})
	return list
}
