// Command jumps needs jumps of every kind. It has loops in loops, and goroutines that wait for each
// other. It catches panics, defers calls, and lets a stack grow.
package main

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"
)

func main() {
	fmt.Println(primes(200))
	fmt.Println(passed(50))
	for n := range 6 {
		fmt.Println(caught(n))
	}
	fmt.Println(deep(20_000), words("to be or not to be that is the question"))
	fmt.Println(chosen())
}

// primes returns primes, by labelled loops.
func primes(most int) (list []int) {
next:
	for n := 2; n < most; n++ {
		for _, p := range list {
			if p*p > n {
				break
			}
			if n%p == 0 {
				continue next
			}
		}
		list = append(list, n)
	}
	return list
}

// passed sends numbers through a row of goroutines. Each waits for the one before.
func passed(n int) (sum int) {
	from := make(chan int)
	go func() {
		defer close(from)
		for i := range n {
			from <- i
		}
	}()
	for range 5 {
		to := make(chan int)
		go func(from chan int) {
			defer close(to)
			for x := range from {
				to <- x + 1
			}
		}(from)
		from = to
	}
	for x := range from {
		sum += x
	}
	return sum
}

// caught panics in several ways, and returns what was caught.
func caught(n int) (said string) {
	defer func() {
		if v := recover(); v != nil {
			said += fmt.Sprintf("caught %v", v)
		}
	}()
	for i := range 3 {
		defer func() { said += fmt.Sprint(i, " ") }()
	}
	var list []int
	var none *strings.Builder
	zero := n - n
	switch n {
	case 0:
		return fmt.Sprint(list[n])
	case 1:
		return none.String()
	case 2:
		return fmt.Sprint(n / zero)
	case 3:
		panic(errors.New("its own"))
	case 4:
		var x any = n
		return x.(string)
	}
	return "nothing "
}

// deep needs a stack that grows.
func deep(n int) int {
	var room [16]int
	room[n%16] = n
	if n == 0 {
		return 0
	}
	return deep(n-1) + room[n%16]%3
}

func words(text string) string {
	count := map[string]int{}
	for _, w := range strings.Fields(text) {
		count[w]++
	}
	var list []string
	for w, n := range count {
		list = append(list, fmt.Sprint(w, n))
	}
	sort.Strings(list)
	slices.Reverse(list)
	return strings.Join(list, " ")
}

// chosen waits for the first of several.
func chosen() string {
	slow, quick := time.After(time.Hour), time.After(time.Millisecond)
	for {
		select {
		case <-slow:
			return "slow"
		case <-quick:
			return "quick"
		}
	}
}
