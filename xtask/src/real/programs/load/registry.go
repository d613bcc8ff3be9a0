// Eight goroutines hash their data and count it in one map. With a second argument they hash before they lock.
package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"strconv"
	"sync"
)

type registry struct {
	sync.Mutex
	seen map[[32]byte]int
}

func digest(data []byte) [32]byte {
	sum := sha256.Sum256(data)
	for i := 0; i < 20; i++ {
		sum = sha256.Sum256(sum[:])
	}
	return sum
}

func (r *registry) add(data []byte) {
	r.Lock()
	defer r.Unlock()
	r.seen[digest(data)]++
}

func (r *registry) addDigest(sum [32]byte) {
	r.Lock()
	defer r.Unlock()
	r.seen[sum]++
}

func main() {
	rounds, _ := strconv.Atoi(os.Args[1])
	before := len(os.Args) > 2
	r := &registry{seen: map[[32]byte]int{}}
	var all sync.WaitGroup
	for g := 0; g < 8; g++ {
		all.Add(1)
		go func() {
			defer all.Done()
			data := make([]byte, 8192)
			for i := 0; i < rounds; i++ {
				data[0] = byte(i)
				if before {
					r.addDigest(digest(data))
				} else {
					r.add(data)
				}
			}
		}()
	}
	all.Wait()
	fmt.Println(len(r.seen))
}
