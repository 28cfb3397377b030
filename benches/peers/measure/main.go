// Runs a command and writes down what it cost, as the kernel counts it when the command has ended.
//
// The kernel takes the size of the process that starts another one for the least size of that one, so this program has
// to be small: nothing but the standard library.
//
//	measure RESULT COMMAND [ARGUMENT…]
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

type cost struct {
	Wall float64 `json:"wall"`
	CPU  float64 `json:"cpu"`
	// In bytes.
	Peak int64 `json:"peak"`
	Code int   `json:"code"`
}

func main() {
	if len(os.Args) < 3 {
		fail(fmt.Errorf("usage: measure RESULT COMMAND [ARGUMENT…]"))
	}
	command := exec.Command(os.Args[2], os.Args[3:]...)
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	start := time.Now()
	err := command.Run()
	wall := time.Since(start)
	if command.ProcessState == nil {
		fail(err)
	}
	state := command.ProcessState
	usage := state.SysUsage().(*syscall.Rusage)
	text, err := json.Marshal(cost{
		Wall: wall.Seconds(),
		CPU:  (state.UserTime() + state.SystemTime()).Seconds(),
		Peak: usage.Maxrss * 1024,
		Code: state.ExitCode(),
	})
	if err == nil {
		err = os.WriteFile(os.Args[1], text, 0o600)
	}
	if err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "measure:", err)
	os.Exit(1)
}
