// Goroutines and their waits, in the form that the first argument names, until work is done; it prints how long they waited.
package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

func price(seed, turns int) [32]byte {
	sum := sha256.Sum256([]byte(strconv.Itoa(seed)))
	for i := 0; i < turns; i++ {
		sum = sha256.Sum256(sum[:])
	}
	return sum
}

// One goroutine prices while it holds the table for writing; the others want to read it.
type table struct {
	sync.RWMutex
	rows map[int][32]byte
}

func (t *table) reprice(seed int) {
	t.Lock()
	defer t.Unlock()
	for i := 0; i < 10; i++ {
		t.rows[i] = price(seed+i, 2000)
	}
}

func (t *table) lookup(i int) [32]byte {
	t.RLock()
	defer t.RUnlock()
	return t.rows[i%10]
}

func rwmutex(rounds int) {
	t := &table{rows: map[int][32]byte{}}
	var waited, reads atomic.Int64
	stop := make(chan bool)
	var all sync.WaitGroup
	for g := 0; g < 4; g++ {
		all.Add(1)
		go func() {
			defer all.Done()
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				begun := time.Now()
				t.lookup(i)
				waited.Add(int64(time.Since(begun)))
				reads.Add(1)
				price(i, 100)
			}
		}()
	}
	for i := 0; i < rounds; i++ {
		t.reprice(i)
		time.Sleep(200 * time.Microsecond)
	}
	close(stop)
	all.Wait()
	fmt.Printf("readers waited %.2f s in RLock in %d reads\n", float64(waited.Load())/1e9, reads.Load())
}

// Four producers and one consumer that takes longer for a row than they do.
func consume(rows chan int, rounds int) {
	for i := 0; i < rounds; i++ {
		price(<-rows, 2000)
	}
}

func channel(rounds int) {
	rows := make(chan int)
	var waited atomic.Int64
	for g := 0; g < 4; g++ {
		go func() {
			for i := 0; ; i++ {
				sum := sha256.Sum256([]byte(strconv.Itoa(i)))
				begun := time.Now()
				rows <- int(sum[0])
				waited.Add(int64(time.Since(begun)))
			}
		}()
	}
	consume(rows, rounds)
	fmt.Printf("producers waited %.2f s in chansend\n", float64(waited.Load())/1e9)
}

// Trees are built and dropped faster than the collector likes.
type node struct {
	left, right *node
	data        [6]int
}

func grow(depth int) *node {
	if depth == 0 {
		return &node{}
	}
	return &node{left: grow(depth - 1), right: grow(depth - 1)}
}

func garbage(rounds int) {
	var all sync.WaitGroup
	for g := 0; g < 4; g++ {
		all.Add(1)
		go func() {
			defer all.Done()
			kept := make([]*node, 24)
			for i := 0; i < rounds; i++ {
				kept[i%len(kept)] = grow(13)
			}
		}()
	}
	all.Wait()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	fmt.Printf("%d collections, %.0f %% of the CPUs\n", stats.NumGC, 100*stats.GCCPUFraction)
}

// Four goroutines that compute, on however many threads GOMAXPROCS allows.
func compute(rounds int) {
	var all sync.WaitGroup
	for g := 0; g < 4; g++ {
		all.Add(1)
		go func() {
			defer all.Done()
			for i := 0; i < rounds; i++ {
				price(i, 2000)
			}
		}()
	}
	all.Wait()
	fmt.Printf("GOMAXPROCS is %d on %d CPUs\n", runtime.GOMAXPROCS(0), runtime.NumCPU())
}

func main() {
	rounds, _ := strconv.Atoi(os.Args[2])
	forms := map[string]func(int){"rwmutex": rwmutex, "channel": channel, "garbage": garbage, "compute": compute}
	forms[os.Args[1]](rounds)
}
