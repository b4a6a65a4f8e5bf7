//go:build !js

package files

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/rewrite/anonymise"
)

// secretVariable is read if no flag names another source.
const secretVariable = "ACKSCOPE_SECRET"

// maxSecret limits a secret that is read from a file, in bytes.
const maxSecret = 64 << 10

// secretFlags name the source of the secret, from which replacements are
// derived.
type secretFlags struct {
	file     string
	variable string
	prompt   bool
	text     string
}

func (s *secretFlags) add(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&s.file, "secret-file", "",
		"make the replacements from the secret in `FILE`, the same each time (default: at random)")
	f.StringVar(&s.variable, "secret-env", "",
		"the same from the environment variable `NAME` (default: "+secretVariable+", where it is set)")
	f.BoolVar(&s.prompt, "secret-prompt", false, "the same from a secret that is asked for on the terminal")
	f.StringVar(&s.text, "seed", "",
		"the same from `TEXT`, which every user of the machine can read: better --secret-file")
	c.MarkFlagsMutuallyExclusive("secret-file", "secret-env", "secret-prompt", "seed")
}

// key returns the key that is derived from the secret, or a random key if there
// is no secret.
func (s *secretFlags) key(a *app.App) (key [32]byte, err error) {
	secret, err := s.read(a)
	if err != nil {
		return key, err
	}
	if secret == nil {
		_, err = rand.Read(key[:])
		return key, err
	}
	return anonymise.KeyOf(secret), nil
}

// read returns the secret, or nil if none is given.
func (s *secretFlags) read(a *app.App) ([]byte, error) {
	switch {
	case s.text != "":
		if !a.Flags.Quiet {
			fmt.Fprintln(a.Err,
				"ackscope: warning: --seed: a secret among the arguments is seen by every user of this machine, "+
					"and stays in the shell's history: --secret-file, --secret-prompt and "+secretVariable+" keep it")
		}
		return []byte(s.text), nil
	case s.file != "":
		return secretFile(s.file)
	case s.prompt:
		return promptedSecret()
	}
	name := s.variable
	if name == "" {
		name = secretVariable
	}
	text, ok := os.LookupEnv(name)
	switch {
	case ok && text != "":
		return []byte(text), nil
	case s.variable != "":
		return nil, fmt.Errorf("--secret-env %s: expected a secret in this environment variable, found none", name)
	case ok:
		return nil, fmt.Errorf("%s: expected a secret, found an empty variable: unset it for a secret at random",
			name)
	}
	return nil, nil
}

// secretFile reads a secret from a file, without the newline at its end.
func secretFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("--secret-file: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	if err != nil {
		return nil, fmt.Errorf("--secret-file: %w", err)
	}
	b = bytes.TrimSuffix(bytes.TrimSuffix(b, []byte("\n")), []byte("\r"))
	switch {
	case len(b) == 0:
		return nil, fmt.Errorf("--secret-file %s: expected a secret, found an empty file", path)
	case len(b) > maxSecret:
		return nil, fmt.Errorf("--secret-file %s: expected at most %d bytes, found more", path, maxSecret)
	}
	return b, nil
}

// promptedSecret asks for a secret twice on the terminal, without echo.
func promptedSecret() ([]byte, error) {
	const terminal = "/dev/tty" // standard input may be the capture
	t, err := os.OpenFile(terminal, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("--secret-prompt: expected a terminal to ask on: %w", err)
	}
	defer t.Close()
	var answers [2][]byte
	for i, question := range []string{"Secret: ", "Secret, once more: "} {
		fmt.Fprint(t, question)
		answers[i], err = term.ReadPassword(int(t.Fd()))
		fmt.Fprintln(t)
		if err != nil {
			return nil, fmt.Errorf("--secret-prompt: %w", err)
		}
	}
	switch {
	case len(answers[0]) == 0:
		return nil, errors.New("--secret-prompt: expected a secret, found an empty line")
	case !bytes.Equal(answers[0], answers[1]):
		return nil, errors.New("--secret-prompt: expected the same secret twice, found two")
	}
	return answers[0], nil
}
