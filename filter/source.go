package filter

// A source gives the values that an operand has in a record to a test. It is
// asked when the filter is compiled and answers with the finished predicate, so
// that nothing is built per packet. With all unset the predicate reports
// whether some value passes; with all set, whether there are values and every
// one passes.
//
// Tests take the record along: of two fields that are compared, the left one's
// value waits in it.
type (
	test[T any]   func(r *Record, v T) bool
	source[T any] func(pass test[T], all bool) predicate
	predicate     func(*Record) bool
)

// one makes a source of an operand that has one value at most.
func one[T any](get func(*Record) (T, bool)) source[T] {
	return func(pass test[T], _ bool) predicate {
		return func(r *Record) bool {
			v, ok := get(r)
			return ok && pass(r, v)
		}
	}
}

// two makes a source of an operand that has two values, or none.
func two[T any](get func(*Record) (T, T, bool)) source[T] {
	return func(pass test[T], all bool) predicate {
		if all {
			return func(r *Record) bool {
				v, w, ok := get(r)
				return ok && pass(r, v) && pass(r, w)
			}
		}
		return func(r *Record) bool {
			v, w, ok := get(r)
			return ok && (pass(r, v) || pass(r, w))
		}
	}
}

// each makes a source over a list of the record: value gives what an item is
// worth, or false where it has none.
func each[I, T any](list func(*Record) []I, value func(*Record, *I) (T, bool)) source[T] {
	return func(pass test[T], all bool) predicate {
		return func(r *Record) bool {
			found := false
			items := list(r)
			for i := range items {
				if v, ok := value(r, &items[i]); ok {
					found = true
					if pass(r, v) != all {
						return !all
					}
				}
			}
			return found && all
		}
	}
}

// mapped makes a source whose values are made from those of another; where none
// can be made of a value, no test passes.
func mapped[S, T any](inner source[S], f func(*Record, S) (T, bool)) source[T] {
	return func(pass test[T], all bool) predicate {
		return inner(func(r *Record, s S) bool {
			v, ok := f(r, s)
			return ok && pass(r, v)
		}, all)
	}
}

// worded makes the values of a text field of its texts: most comparisons look at
// them as they are, the others at a copy of their bytes.
func worded(s source[string]) values {
	return values{s: s, b: mapped(s, func(r *Record, v string) ([]byte, bool) { return r.word(v), true })}
}

func anything[T any](*Record, T) bool { return true }

// counted makes a source of how many values another has; none where it has none.
func counted[T any](inner source[T]) source[uint64] {
	count := inner(func(r *Record, _ T) bool { r.count++; return false }, false)
	return one(func(r *Record) (uint64, bool) {
		r.count = 0
		count(r)
		return r.count, r.count > 0
	})
}
