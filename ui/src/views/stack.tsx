/** A call chain, the innermost frame first: what the kernel adds is folded. */

import { useState } from "preact/hooks";

const KERNEL = /^(__schedule|schedule|do_syscall|entry_SYSCALL|__x64_sys|x64_sys_call|__do_sys|try_to_wake_up|asm_)/;

export function Stack({ title, frames, open = false }: { title: string; frames: readonly string[]; open?: boolean }) {
  const [shown, show] = useState(open);
  return (
    <div class="stack">
      <button class="fold" aria-expanded={shown} onClick={() => show(!shown)}>
        <span aria-hidden="true">{shown ? "▾" : "▸"}</span> {title} <span class="dim">{frames.length} frames</span>
      </button>
      {shown && (
        <ol>
          {frames.map((f, i) => (
            <li key={i} class={KERNEL.test(f) ? "dim" : ""}>
              {f}
            </li>
          ))}
        </ol>
      )}
    </div>
  );
}
