//! The data that templates see: Go's names of the fields of a service, and what they hold.

use serde_json::{Map, Value};

/// Below each type stand its fields: Go's name, the name in YAML, what it holds. `~` before a type takes over its
/// fields, `*` is what may be absent, `any` what is not described here, such as the specs of pods.
const TYPES: &str = "
Root
  ~ObjectMeta metadata
  ObjectMeta metadata ObjectMeta
  Spec spec Spec
  GlobalConfig globalConfig GlobalConfig
ObjectMeta
  Name name text
  Namespace namespace text
  Labels labels map
  Annotations annotations map
GlobalConfig
  SystemNamespace systemNamespace text
  IngressGatewayName ingressGatewayName text
  IngressGatewayNamespace ingressGatewayNamespace text
  EnableTLS enableTLS bool
  ModelBasedRoutingHeaderName modelBasedRoutingHeaderName text
  InferencePoolNamespacedName inferencePoolNamespacedName text
Spec
  ~Workload
  BaseRefs baseRefs any
  Model model Model
  StorageInitializer storageInitializer any
  Router router any
  Prefill prefill *Workload
  Tracing tracing *Tracing
Workload
  Replicas replicas *
  Scaling scaling any
  Parallelism parallelism *Parallelism
  Template template any
  Worker worker any
  KVCacheOffloading kvCacheOffloading any
  RolloutStrategy rolloutStrategy any
  Labels labels map
  Annotations annotations map
Parallelism
  Tensor tensor *
  Pipeline pipeline *
  Data data *
  DataLocal dataLocal *
  DataRPCPort dataRPCPort *
  Expert expert bool
Model
  URI uri text
  Name name *
  LoRA lora any
  Confidential confidential any
Tracing
  ExporterEndpoint exporterEndpoint *
  Sampler sampler *
  SamplerArg samplerArg *
  Exporter exporter *
";

/// A value, and what is known about it.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub(super) value: Value,
    pub(super) holds: Holds,
}

/// The kind of a value in Go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holds {
    /// A value that is always there.
    Plain,
    /// A value that may be absent: it counts as true if it is there, whatever it says.
    Pointer,
    /// A type of the table; it is always there.
    Struct(&'static str),
    /// One that may be absent.
    Optional(&'static str),
    /// A map from texts.
    Map,
    /// A value that is not described.
    Any,
}

impl Item {
    pub(super) fn root(data: &Value) -> Self {
        Self { value: data.clone(), holds: Holds::Struct("Root") }
    }

    /// Returns a value that a function or a literal yields.
    pub(super) fn plain(value: impl Into<Value>) -> Self {
        Self { value: value.into(), holds: Holds::Plain }
    }

    /// Tells whether Go counts it as true.
    pub(super) fn is_true(&self) -> bool {
        match (&self.value, self.holds) {
            (Value::Null, _) => false,
            (_, Holds::Pointer | Holds::Struct(_) | Holds::Optional(_)) => true,
            (Value::Bool(value), _) => *value,
            (Value::Number(number), _) => number.as_f64() != Some(0.0),
            (Value::String(text), _) => !text.is_empty(),
            (Value::Array(items), _) => !items.is_empty(),
            (Value::Object(fields), Holds::Map) => !fields.is_empty(),
            (Value::Object(_), _) => true,
        }
    }

    pub(super) fn field(&self, name: &str) -> Result<Self, String> {
        match self.holds {
            Holds::Optional(_) | Holds::Any if self.value.is_null() => {
                Err(format!("what .{name} is asked of is not set"))
            }
            Holds::Struct(ty) | Holds::Optional(ty) => self.of_type(ty, name),
            Holds::Map => match self.value.get(name) {
                Some(value) => Ok(Self { value: value.clone(), holds: Holds::Any }),
                None => Err(format!("there is no entry {name:?}")),
            },
            Holds::Any => self.foreign(name).ok_or_else(|| format!("the field .{name} is not set")),
            Holds::Plain | Holds::Pointer => Err(format!("a plain value has no field .{name}")),
        }
    }

    fn of_type(&self, ty: &'static str, name: &str) -> Result<Self, String> {
        for line in lines(ty) {
            let mut words = line.split_whitespace();
            let (Some(go), json) = (words.next(), words.next()) else { continue };
            let field = |json: &str| self.value[json].clone();
            let found = match (go.strip_prefix('~'), json) {
                (Some(embedded), None) => self.of_type(embedded, name).ok(),
                (Some(embedded), Some(json)) => {
                    Self { value: field(json), holds: Holds::Struct(embedded) }.field(name).ok()
                }
                (None, Some(json)) if go == name => Some(described(field(json), words.next().unwrap_or("any"))),
                (None, _) => None,
            };
            if let Some(found) = found {
                return Ok(found);
            }
        }
        Err(format!("there is no field .{name}; names of fields are Go's, as in .Spec.Model.Name"))
    }

    /// A field of which only Go's name is known: the name in YAML differs from it in nothing but the case.
    fn foreign(&self, name: &str) -> Option<Self> {
        let fields = self.value.as_object()?;
        let (_, value) = fields.iter().find(|(field, _)| field.eq_ignore_ascii_case(name))?;
        Some(Self { value: value.clone(), holds: Holds::Any })
    }
}

fn lines(ty: &str) -> impl Iterator<Item = &'static str> {
    let mut lines = TYPES.lines().skip_while(move |line| *line != ty);
    lines.next();
    lines.take_while(|line| line.starts_with(' '))
}

fn described(value: Value, holds: &'static str) -> Item {
    let value = match (value, holds) {
        (Value::Null, "text") => Value::String(String::new()),
        (Value::Null, "bool") => Value::Bool(false),
        (Value::Null, holds) if holds.starts_with(char::is_uppercase) => Value::Object(Map::new()),
        (value, _) => value,
    };
    let holds = match holds {
        "text" | "bool" => Holds::Plain,
        "*" => Holds::Pointer,
        "map" => Holds::Map,
        "any" => Holds::Any,
        ty => ty.strip_prefix('*').map_or(Holds::Struct(ty), Holds::Optional),
    };
    Item { value, holds }
}
