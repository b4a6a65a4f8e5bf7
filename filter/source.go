package filter

// Source compiles a test of the values that a field has in a record. It runs
// when a filter is compiled and returns the finished predicate, so that nothing
// is built per packet. If all is false, the predicate reports whether some
// value passes. If all is true, it reports whether there are values and every
// one passes.
type Source[T any] func(pass Test[T], all bool) Predicate

// Test reports whether a value passes. It receives the record, because in a
// comparison of two fields the record holds the left value.
type Test[T any] func(r *Record, v T) bool

// Predicate reports whether a record passes.
type Predicate func(*Record) bool

// One returns a source for an operand with at most one value.
func One[T any](get func(*Record) (T, bool)) Source[T] {
	return func(pass Test[T], _ bool) Predicate {
		return func(r *Record) bool {
			v, ok := get(r)
			return ok && pass(r, v)
		}
	}
}

// Two returns a source for an operand that has two values or none.
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

// Each returns a source over a list of the record. value returns the value of
// an item, or false if it has none.
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

// mapped returns a source whose values are f of another source's values. If f
// returns false, no test passes.
func mapped[S, T any](inner Source[S], f func(*Record, S) (T, bool)) Source[T] {
	return func(pass Test[T], all bool) Predicate {
		return inner(func(r *Record, s S) bool {
			v, ok := f(r, s)
			return ok && pass(r, v)
		}, all)
	}
}

// TextValues returns the Values of a text field. Most comparisons use the
// strings directly, the others use a copy of their bytes.
func TextValues(s Source[string]) Values {
	return Values{Strings: s, Bytes: mapped(s, func(r *Record, v string) ([]byte, bool) { return r.word(v), true })}
}

// Anything is the test that every value passes. With it a source reports
// whether there is a value.
func Anything[T any](*Record, T) bool { return true }

// counted returns a source for the number of values of another source. It has
// no value if the other has none.
func counted[T any](inner Source[T]) Source[uint64] {
	count := inner(func(r *Record, _ T) bool { r.count++; return false }, false)
	return One(func(r *Record) (uint64, bool) {
		r.count = 0
		count(r)
		return r.count, r.count > 0
	})
}
