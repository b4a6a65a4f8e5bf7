package filter

// Source gives the values that a field has in a record to a test. It is asked when
// a filter is compiled and answers with the finished predicate, so that nothing is
// built per packet. With all unset the predicate reports whether some value passes;
// with all set, whether there are values and every one passes.
type Source[T any] func(pass Test[T], all bool) Predicate

// Test reports whether a value passes. It takes the record along: of two fields that
// are compared, the left one's value waits in it.
type Test[T any] func(r *Record, v T) bool

// Predicate reports whether a record passes.
type Predicate func(*Record) bool

// One makes a source of an operand that has one value at most.
func One[T any](get func(*Record) (T, bool)) Source[T] {
	return func(pass Test[T], _ bool) Predicate {
		return func(r *Record) bool {
			v, ok := get(r)
			return ok && pass(r, v)
		}
	}
}

// Two makes a source of an operand that has two values, or none.
func Two[T any](get func(*Record) (T, T, bool)) Source[T] {
	return func(pass Test[T], all bool) Predicate {
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

// Each makes a source over a list of the record: value gives what an item is
// worth, or false where it has none.
func Each[I, T any](list func(*Record) []I, value func(*Record, *I) (T, bool)) Source[T] {
	return func(pass Test[T], all bool) Predicate {
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
func mapped[S, T any](inner Source[S], f func(*Record, S) (T, bool)) Source[T] {
	return func(pass Test[T], all bool) Predicate {
		return inner(func(r *Record, s S) bool {
			v, ok := f(r, s)
			return ok && pass(r, v)
		}, all)
	}
}

// Worded makes the values of a text field of its texts: most comparisons look at
// them as they are, the others at a copy of their bytes.
func Worded(s Source[string]) Values {
	return Values{Strings: s, Bytes: mapped(s, func(r *Record, v string) ([]byte, bool) { return r.word(v), true })}
}

// Anything is the test that every value passes: with it a source tells whether there is one.
func Anything[T any](*Record, T) bool { return true }

// counted makes a source of how many values another has; none where it has none.
func counted[T any](inner Source[T]) Source[uint64] {
	count := inner(func(r *Record, _ T) bool { r.count++; return false }, false)
	return One(func(r *Record) (uint64, bool) {
		r.count = 0
		count(r)
		return r.count, r.count > 0
	})
}
