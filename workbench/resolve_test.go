package workbench

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestResolveDirNeverEntersTheMount(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(parts ...string) string { return filepath.Join(append([]string{top}, parts...)...) }
	mount := at("scv")
	for _, dir := range []string{at("shop", "ü 'x'\n"), at("scvx")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{
		"link": "shop", "abs": at("shop"), "trap": "shop/../scv/sessions", "loop": "loop", "up": "shop/..",
	} {
		if err := os.Symlink(target, at(name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(at("file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	// The mount point does not exist here: anything that asked for it would
	// say so, and not that it is the mount.
	for path, want := range map[string]string{
		at("shop"): at("shop"), at("link"): at("shop"), at("abs"): at("shop"), at("up"): top, at("up", "scvx"): at("scvx"),
		at("shop", "ü 'x'\n"): at("shop", "ü 'x'\n"), at("shop", "..", "link", "."): at("shop"), "/": "/",
	} {
		if got, err := resolveDir(path, mount); err != nil || got != want {
			t.Errorf("resolveDir(%q) = %q, %v; want %q", path, got, err, want)
		}
	}
	for path, why := range map[string]string{
		mount: "mount point", at("scv", "sessions"): "mount point", at("trap"): "mount point", at("up", "scv"): "mount point",
		at("loop"): "symbolic links", at("none"): "does not exist", at("file"): "not a directory", at("file", "x"): "file",
		"shop": "absolute", "": "absolute",
	} {
		if _, err := resolveDir(path, mount); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("resolveDir(%q): %v; want a refusal that says %q", path, err, why)
		}
	}
}
