// Eight goroutines between two waits for all of them; one has most of the work.
package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"
)

func grind(turns int) (sum [32]byte) {
	for i := 0; i < turns; i++ {
		sum = sha256.Sum256(sum[:])
	}
	return
}

func main() {
	rounds, _ := strconv.Atoi(os.Args[1])
	begun := time.Now()
	var longest time.Duration
	for r := 0; r < rounds; r++ {
		var all sync.WaitGroup
		for k := 0; k < 8; k++ {
			turns := 20000
			if k == 5 {
				turns = 800000
			}
			all.Add(1)
			go func() {
				defer all.Done()
				begun := time.Now()
				grind(turns)
				if turns > 20000 {
					longest += time.Since(begun)
				}
			}()
		}
		all.Wait()
	}
	fmt.Printf("one of eight works for %.2f of %.2f s\n", longest.Seconds(), time.Since(begun).Seconds())
}
