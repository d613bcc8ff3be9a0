/** Source beside instructions, each with the share of samples that it has. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { CodeDocument, Request } from "../host/api";
import { base, count, many, percent } from "../lib/format";
import { useAsk } from "../state/ask";
import { openCode } from "../state/nav";
import { use } from "../state/store";

export function Code() {
  const s = use((s) => ({ code: s.code, explain: s.explain, trace: s.trace, ready: s.summary !== null }));
  const request: Request | null =
    s.code && s.ready
      ? { ask: "code", function: s.code.function, ...(s.code.module ? { module: s.code.module } : {}) }
      : null;
  const { answer, error, loading } = useAsk<CodeDocument>(request, "code");
  const doc = answer?.json ?? null;
  return (
    <div class="view code-view">
      <div class="tools">
        <Pick current={s.code?.function ?? ""} />
        {doc && (
          <span class="dim">
            {base(doc.module)} · {doc.arch} · {many(doc.samples, "sample")} of {count(doc.samples_total)} ({percent(doc.share)})
          </span>
        )}
      </div>
      {error && <p class="note">{error}</p>}
      {!s.code && <Suggestions />}
      {loading && !doc && <p class="note">Reading the code …</p>}
      {doc && !error && <Annotated doc={doc} />}
    </div>
  );
}

function Pick({ current }: { current: string }) {
  const [text, setText] = useState<string | null>(null);
  return (
    <input
      type="search"
      class="wide"
      spellcheck={false}
      placeholder="Function, or a part of its name; Enter shows it"
      aria-label="Function"
      value={text ?? current}
      onInput={(e) => setText(e.currentTarget.value)}
      onKeyDown={(e) => {
        if (e.key !== "Enter" || !text) return;
        openCode(text.trim());
        setText(null);
      }}
      onBlur={() => setText(null)}
    />
  );
}

function Suggestions() {
  const explain = use((s) => s.explain);
  return (
    <div class="note">
      <p>Choose a function:</p>
      <ul>
        {(explain?.hot ?? [])
          .filter((h) => h.function)
          .map((h) => (
            <li key={h.process + h.function + h.module}>
              <button class="link code" onClick={() => openCode(h.function, h.module)}>
                {h.function}
              </button>{" "}
              <span class="dim">
                {percent(h.share)} of {h.process}
                {h.kernel >= 0.5 && `, ${percent(h.kernel)} of that in the kernel`}
              </span>
            </li>
          ))}
      </ul>
    </div>
  );
}

interface Line {
  key: string;
  file: string;
  line: number;
  text: string;
  share: number;
}

/** The source lines that the instructions are of, file by file in their order. */
function linesOf(doc: CodeDocument): Line[] {
  const lines = new Map<string, Line>();
  for (const i of doc.instructions) {
    if (!i.line) continue;
    const key = `${i.file || i.source}:${i.line}`;
    const line = lines.get(key);
    if (line) line.share += i.share;
    else lines.set(key, { key, file: i.file || i.source, line: i.line, text: i.source_text, share: i.share });
  }
  const weight = new Map<string, number>();
  for (const l of lines.values()) weight.set(l.file, (weight.get(l.file) ?? 0) + l.share + 1e-6);
  return [...lines.values()].sort(
    (a, b) => (weight.get(b.file) ?? 0) - (weight.get(a.file) ?? 0) || (a.file < b.file ? -1 : a.file > b.file ? 1 : a.line - b.line),
  );
}

const keyOf = (i: CodeDocument["instructions"][number]) => (i.line ? `${i.file || i.source}:${i.line}` : "");

function Annotated({ doc }: { doc: CodeDocument }) {
  const lines = useMemo(() => linesOf(doc), [doc]);
  const hottest = useMemo(() => doc.instructions.reduce((a, i) => (i.share > (a?.share ?? 0) ? i : a), doc.instructions[0]), [doc]);
  const [chosen, choose] = useState("");
  const key = chosen || (hottest ? keyOf(hottest) : "");
  const asm = useRef<HTMLDivElement>(null);
  const source = useRef<HTMLDivElement>(null);
  useEffect(() => choose(""), [doc]);
  useEffect(() => {
    const show = (pane: HTMLElement | null) => {
      const row = pane?.querySelector<HTMLElement>("tr.on.first, tr.hottest");
      if (row && pane) pane.scrollTop = row.offsetTop - pane.clientHeight / 2;
    };
    show(asm.current);
    show(source.current);
  }, [doc, chosen]);
  const most = Math.max(1e-9, ...doc.instructions.map((i) => i.share));
  const mostOfLines = Math.max(1e-9, ...lines.map((l) => l.share));
  const hasText = lines.some((l) => l.text);
  let before = "";
  let seen = false;
  return (
    <>
      <h2 class="function">{doc.function}</h2>
      {doc.others.length > 0 && (
        <p class="note">
          Also:{" "}
          {doc.others.slice(0, 6).map((o) => (
            <span key={o.function + o.module}>
              <button class="link code" onClick={() => openCode(o.function, o.module)}>
                {o.function}
              </button>{" "}
              <span class="dim">{many(o.samples, "sample")}</span>{" "}
            </span>
          ))}
        </p>
      )}
      {doc.loops.slice(0, 4).map((l) => (
        <p key={l.from + l.to} class="note loop">
          {percent(l.share)} of the samples are in {l.text}, {l.from} – {l.to}.
        </p>
      ))}
      {!doc.has_code && <p class="note warn">The code is not in the recording: only the addresses with samples are shown.</p>}
      {doc.notes.map((n) => (
        <p key={n} class="note">
          {n}
        </p>
      ))}
      <div class="panes">
        {lines.length > 0 && (
          <div class="pane source" ref={source} tabIndex={0} aria-label="Source">
            <table>
              <tbody>
                {lines.map((l) => {
                  const head = l.file !== before && (before = l.file);
                  return [
                    head ? (
                      <tr key={`f${l.file}`} class="file">
                        <td colSpan={3} title={l.file}>
                          {base(l.file)}
                        </td>
                      </tr>
                    ) : null,
                    <tr key={l.key} class={l.key === key ? "on first" : ""} onClick={() => choose(l.key)}>
                      <Heat share={l.share} of={mostOfLines} />
                      <td class="num dim">{l.line}</td>
                      <td class="text">{l.text || (hasText ? "" : <span class="dim">{l.file === "" ? "" : "(source not at hand)"}</span>)}</td>
                    </tr>,
                  ];
                })}
              </tbody>
            </table>
          </div>
        )}
        <div class="pane asm" ref={asm} tabIndex={0} aria-label="Instructions">
          <table>
            <tbody>
              {doc.instructions.map((i) => {
                const on = keyOf(i) === key && key !== "";
                const first = on && !seen && chosen !== "";
                seen ||= on;
                return (
                  <tr
                    key={i.address}
                    class={`${on ? "on" : ""} ${first ? "first" : ""} ${i === hottest && chosen === "" ? "hottest" : ""}`}
                    data-hot={i === hottest ? "" : undefined}
                    onClick={() => choose(keyOf(i))}
                  >
                    <Heat share={i.share} of={most} />
                    <td class="loopmark" title={i.loops.length > 0 ? "part of a short loop" : ""}>
                      {i.loops.length > 0 ? "│" : ""}
                    </td>
                    <td class="dim" title={i.address}>
                      +{i.offset.toString(16)}
                    </td>
                    <td class="text">{i.text || i.address}</td>
                    <td class="dim src" title={i.file ? `${i.file}:${i.line}` : ""}>
                      {i.source}
                      {i.inlined && <span> {i.inlined}</span>}
                    </td>
                  </tr>
                );
              })}
            </tbody>
          </table>
        </div>
      </div>
    </>
  );
}

/** The share as a number and a bar: colour adds nothing to them. */
function Heat({ share, of }: { share: number; of: number }) {
  return (
    <td class="heat num">
      {share > 0 && <span class="fill" style={{ width: `${((share / of) * 100).toFixed(1)}%` }} />}
      <span class="figure">{share > 0 ? percent(share) : ""}</span>
    </td>
  );
}
