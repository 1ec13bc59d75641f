// A GraphQL endpoint with graphql-yoga: queries, variables, errors, and a subscription as server-sent events.
import { createSchema, createYoga } from "graphql-yoga";

const books = [
  { id: "1", title: "Sartor Resartus", pages: 288 },
  { id: "2", title: "The Anathemata", pages: 244 },
];

const yoga = createYoga({
  graphqlEndpoint: "/graphql",
  landingPage: false,
  graphiql: false,
  logging: false,
  schema: createSchema({
    typeDefs: /* GraphQL */ `
      type Book { id: ID! title: String! pages: Int! }
      type Query { books(minPages: Int = 0): [Book!]! book(id: ID!): Book }
      type Subscription { countdown(from: Int!): Int! }
    `,
    resolvers: {
      Query: {
        books: (_: unknown, { minPages }: { minPages: number }) => books.filter((b) => b.pages >= minPages),
        book: (_: unknown, { id }: { id: string }) => books.find((b) => b.id === id) ?? null,
      },
      Subscription: {
        countdown: {
          async *subscribe(_: unknown, { from }: { from: number }) {
            for (let countdown = from; countdown >= 0; countdown--) yield { countdown };
          },
        },
      },
    },
  }),
});

export const graphql = (request: Request) => yoga.fetch(request);
