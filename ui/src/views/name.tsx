/** A function's name, which may break where its parts end. */
export function Name({ text }: { text: string }) {
  const parts = text.split(/(?<=::|[,<(/])/);
  return (
    <>
      {parts.map((p, i) => (
        <span key={i}>
          {p}
          <wbr />
        </span>
      ))}
    </>
  );
}
