package place

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem"

	"github.com/ackscope/ackscope/batch"
	"github.com/ackscope/ackscope/outfile"
)

// WorkFolder is the folder below the output that a run works in. It may be deleted after the run.
const WorkFolder = ".beam"

// Output is the folder that a run writes, on this machine or in a store.
type Output struct{ Folder string }

// remote reports whether the folder is in a store.
func (o Output) remote() bool { return batch.IsAddress(o.Folder) }

// At returns the address of a file below the folder.
func (o Output) At(name string) string {
	if o.remote() {
		return Join(o.Folder, name)
	}
	return filepath.Join(o.Folder, filepath.FromSlash(name))
}

// temporary is the folder of files of this machine that are not complete.
func (o Output) temporary() string { return filepath.Join(o.Folder, WorkFolder, "unfinished") }

// Check refuses a folder that holds something else than earlier output.
func (o Output) Check(ctx context.Context) error {
	found, err := list(ctx, escape(o.At("*")))
	if err != nil || len(found) == 0 {
		return err
	}
	for _, one := range found {
		if name := one[strings.LastIndexAny(one, `/\`)+1:]; name == WorkFolder || name == ".batch" {
			return nil
		}
	}
	if o.remote() { // its listing shows no folders
		if found, err = list(ctx, Join(o.Folder, WorkFolder, "*")); err != nil || len(found) > 0 {
			return err
		}
	}
	return fmt.Errorf("%s: holds files of something else: expected a new folder, or one that ackscope wrote", o.Folder)
}

// escape makes the folder of a pattern literal.
func escape(pattern string) string {
	folder, last := filepath.Split(pattern)
	return strings.NewReplacer("[", "[[]", "*", "[*]", "?", "[?]").Replace(folder) + last
}

// Write writes a file whole, or not at all. fill writes its bytes, and returns its name below the
// folder, with slashes; "" for no file. Write returns that name.
func (o Output) Write(ctx context.Context, fill func(io.Writer) (string, error)) (string, error) {
	if o.remote() {
		return o.upload(ctx, fill)
	}
	if err := os.MkdirAll(o.temporary(), 0o777); err != nil {
		return "", err
	}
	var outputs outfile.Outputs // of this file alone: another try of the same bundle may write it at a time
	file, err := outputs.Unplaced(o.temporary(), outfile.Text)
	if err != nil {
		return "", err
	}
	file.Durable()
	name, err := filled(file, fill)
	if err != nil || name == "" {
		return "", errors.Join(err, file.Abort())
	}
	target := o.At(name)
	if err := os.MkdirAll(filepath.Dir(target), 0o777); err != nil {
		return "", errors.Join(err, file.Abort())
	}
	return name, file.CommitAs(target)
}

// filled calls fill with a buffer, and checks the name.
func filled(w io.Writer, fill func(io.Writer) (string, error)) (string, error) {
	buffer := bufio.NewWriterSize(w, 64<<10)
	name, err := fill(buffer)
	if err == nil {
		err = buffer.Flush()
	}
	if err == nil && name != "" && !filepath.IsLocal(filepath.FromSlash(name)) {
		err = fmt.Errorf("%q: expected a name below the folder", name)
	}
	return name, err
}

// upload writes a file of a store. A store has no rename that is whole, but an object appears whole.
// So the bytes wait on this machine until the name is known.
func (o Output) upload(ctx context.Context, fill func(io.Writer) (string, error)) (string, error) {
	file, err := Temporary()
	if err != nil {
		return "", err
	}
	defer file.Close()
	name, err := filled(file, fill)
	if err != nil || name == "" {
		return "", err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	fs, err := system(o.Folder)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	to, err := fs.OpenWrite(ctx, o.At(name))
	if err != nil {
		return "", err
	}
	if _, err := io.Copy(to, file); err != nil {
		cancel() // so that Close makes no object of what came
		return "", errors.Join(err, to.Close())
	}
	return name, to.Close()
}

// Sweep removes the parts and plans of earlier runs. names are those that stay.
func (o Output) Sweep(ctx context.Context, names map[string]bool) error {
	placed := map[string]bool{}
	for name := range names {
		placed[o.At(name)] = true
	}
	old, err := list(ctx, escape(o.At(WorkFolder+"/plan-*")))
	if err != nil {
		return err
	}
	if o.remote() {
		for _, s := range batch.Tables() {
			found, err := Below(ctx, Join(o.Folder, s.Name))
			if err != nil {
				return err
			}
			old = slices.Concat(old, slices.DeleteFunc(found, func(one string) bool { return !batch.IsPart(path.Base(one)) }))
		}
	} else if err := errors.Join(batch.Sweep(o.Folder, placed), os.RemoveAll(o.temporary())); err != nil {
		return err
	}
	return o.remove(ctx, slices.DeleteFunc(old, func(one string) bool { return placed[one] }))
}

// Tidy ends a run. No file may be incomplete.
func (o Output) Tidy() {
	if !o.remote() {
		_ = os.Remove(o.temporary()) // it is empty, or holds files of another try of the last step
	}
}

// remove removes files.
func (o Output) remove(ctx context.Context, list []string) error {
	if len(list) == 0 {
		return nil
	}
	fs, err := system(o.Folder)
	if err != nil {
		return err
	}
	remover, ok := fs.(filesystem.Remover)
	if !ok {
		return fmt.Errorf("%s: is of an earlier run, and this store cannot remove it", list[0])
	}
	for _, one := range list {
		if err := remover.Remove(ctx, one); err != nil {
			return err
		}
	}
	return nil
}
