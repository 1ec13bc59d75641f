import { Suspense, createContext, use, useId, useMemo } from "react";

const Language = createContext("en");

// later resolves after other work had its turn, as a query to a store would.
function later<T>(value: T, ms: number): Promise<T> {
  return new Promise((resolve) => setTimeout(() => resolve(value), ms));
}

function Greeting({ name }: { name: string }) {
  const id = useId();
  return <h1 id={id} lang={use(Language)}>Hello, {name}!</h1>;
}

function Items({ items }: { items: Promise<string[]> }) {
  return <ul>{use(items).map((item) => <li key={item}>{item}</li>)}</ul>;
}

export function Page({ name }: { name: string }) {
  const items = useMemo(() => later(["one", "two", "three"], 200), []);
  return (
    <html>
      <head><title>react-ssr</title></head>
      <body>
        <Language value="fr"><Greeting name={name} /></Language>
        <Suspense fallback={<p>loading</p>}>
          <Items items={items} />
        </Suspense>
      </body>
    </html>
  );
}
