{{/* The name of what is in a namespace. Of two releases in one namespace each has its own. */}}
{{- define "gatewright.name" -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- end }}

{{/* The name of what is in no namespace: two releases of one name may stand in two of them. */}}
{{- define "gatewright.clusterName" -}}
{{- printf "gatewright:%s:%s" .Release.Namespace .Release.Name -}}
{{- end }}

{{- define "gatewright.selector" -}}
app.kubernetes.io/name: gatewright
app.kubernetes.io/instance: {{ include "gatewright.name" . }}
{{- end }}

{{- define "gatewright.labels" -}}
{{ include "gatewright.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end }}

{{/* The port of http.listen. */}}
{{- define "gatewright.port" -}}
{{- regexFind "[0-9]+$" .Values.http.listen -}}
{{- end }}
