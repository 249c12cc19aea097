// The AI SDK: its OpenAI provider over responses (its default) and over chat, and its provider for compatible servers.
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { embed, generateObject, generateText, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";

const baseURL = process.argv[2];
const openai = createOpenAI({ baseURL, apiKey: "none" });
const compatible = createOpenAICompatible({ baseURL, name: "rag-assistant", includeUsage: true, supportsStructuredOutputs: true });
const question = "What does the lamp of the lighthouse burn?";

const ways = { "openai (responses)": openai, "openai.chat": openai.chat, compatible };
const height = tool({ inputSchema: z.object({ lamp: z.string() }), execute: ({ lamp }) => `${lamp}: 40 m` });
const schema = z.object({ name: z.string(), hours: z.number() });
for (const [name, provider] of Object.entries(ways)) {
  const messages = [{ role: "user", content: question }];
  const first = await generateText({ model: provider("rag-assistant"), messages, maxRetries: 0 });
  console.log(`${name}:`, first.text, "| sources:", first.sources.map((one) => one.title).join(", ") || "none");
  messages.push(...first.response.messages, { role: "user", content: "And who trims it?" });
  const stream = streamText({ model: provider("rag-assistant"), messages, maxRetries: 0 });
  let text = "";
  for await (const part of stream.textStream) text += part;
  console.log("  second turn, streamed:", text, "|", (await stream.usage).totalTokens, "tokens");
  const asked = { model: provider("rag-assistant"), prompt: question, maxRetries: 0 };
  const run = await generateText({ ...asked, tools: { height }, stopWhen: stepCountIs(3) });
  console.log("  tool:", run.text, "|", run.steps.map((step) => step.finishReason).join(", "));
  const formed = await generateObject({ ...asked, schema });
  console.log("  schema:", JSON.stringify(formed.object));
}
const { embedding } = await embed({ model: openai.embedding("rag-assistant-embeddings"), value: "lamp" });
console.log("embedding:", embedding.length);
