import { Suspense, createContext, use, useId } from "react";

const Language = createContext("en");

function Greeting({ name }: { name: string }) {
  const id = useId();
  return <h1 id={id} lang={use(Language)}>Hello, {name}!</h1>;
}

function Items({ items }: { items: Promise<string[]> }) {
  return <ul>{use(items).map((item) => <li key={item}>{item}</li>)}</ul>;
}

export function Page({ name, items }: { name: string; items: Promise<string[]> }) {
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
